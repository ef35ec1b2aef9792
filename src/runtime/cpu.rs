//! Loads the CPU runtime, whose library is installed next to the code that uses it.

use std::env;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};

use level_zero_sys as sys;

use super::serving::LOADER;
use crate::error::{Error, Result};
use crate::shared_library;

/// The environment variable that overrides the path of the CPU runtime's library.
pub const CPU_LIBRARY_VARIABLE: &str = "ZEUSM_CPU_LIBRARY";

/// The folder beside the Python extension, or beside a program that is installed in the same way. Its library there has the
/// loader's name.
const PACKAGED: &str = "lib";
/// Cargo's name of the library, next to tests, and in this folder next to a program. Of a dependency that is no path, the name
/// has a hash.
const BUILT: &str = "zeusm_cpu";
const DEPENDENCIES: &str = "deps";

/// Opens the CPU runtime.
///
/// Its name (on Linux its SONAME) is that of the Level Zero loader, so a SYCL runtime that starts later in this process uses it,
/// unless the system's loader was loaded first.
pub(super) fn load() -> Result<&'static sys::Library> {
    let tried = candidates();
    match tried.iter().find(|path| path.is_file()) {
        // SAFETY: the file was installed with this code as the CPU runtime, or the environment names it, which is as trusted as
        // the variables of the dynamic linker.
        Some(path) => Ok(unsafe { sys::load_from(path) }?),
        None => Err(Error::CpuRuntimeMissing {
            tried,
            variable: CPU_LIBRARY_VARIABLE,
        }),
    }
}

/// Whether this file is the CPU runtime of the package.
pub(super) fn is_packaged(library: &Path) -> bool {
    let Ok(library) = library.canonicalize() else {
        return false;
    };
    let mut candidates = candidates().into_iter();
    candidates.any(|path| path.canonicalize().is_ok_and(|path| path == library))
}

pub(super) fn candidates() -> Vec<PathBuf> {
    if let Some(path) = env::var_os(CPU_LIBRARY_VARIABLE) {
        return vec![PathBuf::from(path)];
    }
    let here = shared_library::path_of(load as *const _);
    let here = here.map(|file| file.canonicalize().unwrap_or(file));
    let folders: Vec<PathBuf> = here
        .iter()
        .flat_map(|file| file.ancestors().skip(1).take(2))
        .map(PathBuf::from)
        .collect();
    let built = format!("{DLL_PREFIX}{BUILT}{DLL_SUFFIX}");
    let packaged = Path::new(PACKAGED).join(LOADER.to_string_lossy().as_ref());
    let mut tried: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| [folder.join(&packaged), folder.join(&built)])
        .collect();
    let deps = folders.iter().map(|folder| folder.join(DEPENDENCIES));
    tried.extend(deps.filter_map(|folder| newest_built(&folder)));
    tried
}

/// Cargo's last build of the CPU runtime in a folder.
fn newest_built(folder: &Path) -> Option<PathBuf> {
    let files = folder.read_dir().ok()?.flatten().filter(|file| {
        let name = file.file_name();
        let name = name.to_str().and_then(|name| name.strip_prefix(DLL_PREFIX));
        name.is_some_and(|name| name.starts_with(BUILT) && name.ends_with(DLL_SUFFIX))
    });
    let newest = files.max_by_key(|file| file.metadata().and_then(|it| it.modified()).ok())?;
    Some(newest.path())
}
