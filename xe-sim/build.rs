//! Generates the structures and numbers of the xe kernel interface from the kernel's own headers.

use std::env;
use std::error::Error;
use std::path::PathBuf;

/// Environment variable with the folder that holds `drm/xe_drm.h`.
const INCLUDE_VARIABLE: &str = "XE_DRM_INCLUDE_DIR";

/// The ioctl requests to generate as constants: bindgen cannot evaluate the `sizeof` in their macros.
const REQUESTS: &[&str] = &[
    "DRM_IOCTL_VERSION",
    "DRM_IOCTL_GEM_CLOSE",
    "DRM_IOCTL_PRIME_HANDLE_TO_FD",
    "DRM_IOCTL_PRIME_FD_TO_HANDLE",
    "DRM_IOCTL_XE_DEVICE_QUERY",
    "DRM_IOCTL_XE_GEM_CREATE",
    "DRM_IOCTL_XE_GEM_MMAP_OFFSET",
    "DRM_IOCTL_XE_VM_CREATE",
    "DRM_IOCTL_XE_VM_DESTROY",
    "DRM_IOCTL_XE_VM_BIND",
    "DRM_IOCTL_XE_EXEC_QUEUE_CREATE",
    "DRM_IOCTL_XE_EXEC_QUEUE_DESTROY",
    "DRM_IOCTL_XE_EXEC_QUEUE_GET_PROPERTY",
    "DRM_IOCTL_XE_EXEC",
    "DRM_IOCTL_XE_WAIT_USER_FENCE",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={INCLUDE_VARIABLE}");
    let folder = PathBuf::from(env::var_os(INCLUDE_VARIABLE).unwrap_or("/usr/include".into()));
    if !folder.join("drm/xe_drm.h").is_file() {
        return Err(format!(
            "no drm/xe_drm.h in {}: that of Debian 12 is too old, `make test-intel` builds with that of its sid \
             root; {INCLUDE_VARIABLE} names another folder",
            folder.display()
        )
        .into());
    }
    let mut header = String::from("#include <drm/drm.h>\n#include <drm/xe_drm.h>\n");
    for request in REQUESTS {
        header += &format!("static const unsigned int REQUEST_{request} = {request};\n");
    }
    bindgen::Builder::default()
        .header_contents("xe_sim.h", &header)
        .clang_arg(format!("-I{}", folder.display()))
        // In which Debian installs `asm/types.h`.
        .clang_arg(format!("-I{}/x86_64-linux-gnu", folder.display()))
        .allowlist_type("drm_(xe_.*|version|gem_close|prime_handle)")
        .allowlist_var("DRM_XE_.*|REQUEST_.*")
        .raw_line(format!(
            "pub(crate) const REQUESTS: &[&str] = &{REQUESTS:?};"
        ))
        .derive_default(true)
        .layout_tests(false)
        .parse_callbacks(Box::new(bindgen::CargoCallbacks::new()))
        .generate()?
        .write_to_file(PathBuf::from(env::var("OUT_DIR")?).join("uapi.rs"))?;
    Ok(())
}
