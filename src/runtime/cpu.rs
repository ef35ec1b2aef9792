//! Finding the CPU runtime, which lies beside the code that uses it.

use std::env;
use std::path::PathBuf;

use level_zero_sys as sys;

use super::place::file_of;
use crate::error::{Error, Result};

/// The environment variable that names the CPU runtime's library, when it does not lie where it should.
pub const CPU_LIBRARY_VARIABLE: &str = "ZEUSM_CPU_LIBRARY";

/// Below the folder of the Python extension, and of a program that was installed like that.
const PACKAGED: &str = "lib/libze_loader.so.1";
/// As cargo names it, beside the program or its tests.
const BUILT: &str = "libzeusm_cpu.so";

/// Opens the CPU runtime.
///
/// Its SONAME is that of the Level Zero loader, so from here on a SYCL runtime of this process finds it, unless the
/// system's loader came first.
pub(super) fn load() -> Result<&'static sys::Library> {
    let tried = candidates();
    match tried.iter().find(|path| path.is_file()) {
        Some(path) => Ok(sys::load_from(path)?),
        None => Err(Error::CpuRuntimeMissing {
            tried,
            variable: CPU_LIBRARY_VARIABLE,
        }),
    }
}

pub(super) fn candidates() -> Vec<PathBuf> {
    if let Some(path) = env::var_os(CPU_LIBRARY_VARIABLE) {
        return vec![PathBuf::from(path)];
    }
    let here = file_of(load as *const ()).and_then(|file| file.canonicalize().ok());
    let folders: Vec<PathBuf> = here
        .iter()
        .flat_map(|file| file.ancestors().skip(1).take(2))
        .map(PathBuf::from)
        .collect();
    folders
        .iter()
        .flat_map(|folder| [folder.join(PACKAGED), folder.join(BUILT)])
        .collect()
}
