//! How OpenCL's loader finds the front.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process;

use zeusm_process::{Lazy, maps};

use super::icd::clGetExtensionFunctionAddress;
use crate::system::environment;

/// The variable that names libraries to OpenCL's loader, in addition to those that are installed.
const VARIABLE: &CStr = c"OCL_ICD_FILENAMES";

/// The path of this library; none where it is part of a program.
static LIBRARY: Lazy<Option<PathBuf>> = Lazy::new();

/// Names this library to OpenCL's loader, which reads the variable when the process first uses it.
///
/// The name leads through a thread of this process, and so nowhere in programs that the process starts: they would load the library
/// under the name of Level Zero's loader, and find its devices without having imported zeusm.
pub fn announce() {
    if LIBRARY.get().is_none() {
        LIBRARY.get_or_make(|| maps::file_at(clGetExtensionFunctionAddress as *const () as usize));
        child();
    }
}

/// Adds the name that is valid in this process: also in a fork's child, whose parent may not have used OpenCL yet.
pub fn child() {
    let Some(path) = LIBRARY.get().and_then(Option::as_ref) else {
        return;
    };
    // The number of the first thread is that of the process.
    let root = format!("/proc/self/task/{}/root", process::id());
    if let Ok(name) = CString::new([root.as_bytes(), path.as_os_str().as_bytes()].concat()) {
        environment::append(VARIABLE, &name);
    }
}
