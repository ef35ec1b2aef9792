//! Candidates for the OpenCL library.
//!
//! The wheels that bring SYCL to Python put `libintelocl.so` into the `lib` folder of the environment, which is on no
//! linker path; so the folders of libraries in the process are searched, including this library's.

use std::env;
use std::path::{Path, PathBuf};

use zeusm_process::maps;

/// Names the library to use; no other one is tried then.
pub const VARIABLE: &str = "ZEUSM_OPENCL_LIBRARY";

/// Intel's runtime for the CPU, which exports the whole API and so needs no loader.
const INTEL: &str = "libintelocl.so";

/// The loader of whatever OpenCL runtimes are installed.
const LOADER: &str = "libOpenCL.so.1";

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
    let mut mapped: Vec<PathBuf> = maps::mappings()
        .into_iter()
        .filter_map(|mapping| mapping.path)
        .collect();
    mapped.dedup();
    let in_process = mapped.iter().filter(|path| is_named(path, INTEL)).cloned();
    // <prefix>/lib holds libsycl, and is above <prefix>/lib/python3.x/site-packages, where this library may be.
    let here = maps::file_at(candidates as fn() -> Vec<PathBuf> as usize);
    let beside = mapped
        .iter()
        .filter(|path| is_named(path, "libsycl.so"))
        .chain(&here)
        .flat_map(|path| path.ancestors().skip(1))
        .map(|folder| folder.join(INTEL))
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
            INTEL
        ));
        assert!(is_named(Path::new("libintelocl.so"), INTEL));
        assert!(!is_named(Path::new("/lib/libintelocl.so-gdb.py"), INTEL));
        assert!(!is_named(Path::new("/lib/libintelocl_emu.so"), INTEL));
    }
}
