//! Candidates for the OpenCL library.
//!
//! The wheels that bring SYCL to Python put Intel's runtime beside SYCL's library into a folder of the environment, which is on no
//! linker path; so the folders of libraries in the process are searched, including this library's.

#[cfg(target_os = "linux")]
#[path = "find/linux.rs"]
mod names;
#[cfg(windows)]
#[path = "find/windows.rs"]
mod names;

use std::env;
use std::path::{Path, PathBuf};

pub use names::{INSTALLED, hindrance, is_absent};
use names::{INTEL, LOADER, PLACES, SYCL};

use crate::system::library;

/// Names the library to use; no other one is tried then.
pub const VARIABLE: &str = "ZEUSM_OPENCL_LIBRARY";

/// The user's choice. An empty one is none.
pub fn chosen() -> Option<PathBuf> {
    let path = env::var_os(VARIABLE).filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}

/// The libraries to try, the best first. Bare names are for the dynamic linker to find.
pub fn candidates() -> Vec<PathBuf> {
    if let Some(path) = chosen() {
        return vec![path];
    }
    let mapped = library::loaded();
    let in_process = mapped.iter().filter(|path| is_named(path, INTEL)).cloned();
    // <prefix>/lib holds libsycl, and is above <prefix>/lib/python3.x/site-packages, where this library may be.
    let here = library::path_of(candidates as fn() -> Vec<PathBuf> as usize);
    let beside = mapped
        .iter()
        .filter(|path| is_named(path, SYCL))
        .chain(&here)
        .flat_map(|path| path.ancestors().skip(1))
        .flat_map(|folder| PLACES.map(|place| folder.join(place).join(INTEL)))
        .filter(|path| path.is_file());
    let mut found: Vec<PathBuf> = Vec::new();
    for path in in_process
        .chain(beside)
        .chain([INTEL.into(), LOADER.into()])
    {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// Whether `path` is the library `name`, with or without a version behind it.
fn is_named(path: &Path, name: &str) -> bool {
    let file = path.file_name().and_then(|file| file.to_str());
    file.and_then(|file| file.strip_prefix(name))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_belongs_to_the_name_and_another_name_does_not() {
        assert!(is_named(
            Path::new("/lib/libintelocl.so.2026.22.10.0"),
            "libintelocl.so"
        ));
        assert!(is_named(Path::new("libintelocl.so"), "libintelocl.so"));
        assert!(!is_named(
            Path::new("/lib/libintelocl.so-gdb.py"),
            "libintelocl.so"
        ));
        assert!(!is_named(
            Path::new("/lib/libintelocl_emu.so"),
            "libintelocl.so"
        ));
    }
}
