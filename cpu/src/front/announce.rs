//! How OpenCL's loader finds the front.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::process;

use zeusm_process::{Local, maps};

use super::icd::clGetExtensionFunctionAddress;
use crate::system::environment;

/// The variable that names libraries to OpenCL's loader, in addition to those that are installed.
const VARIABLE: &CStr = c"OCL_ICD_FILENAMES";

/// Names this library to OpenCL's loader, which reads the variable when the process first uses it.
///
/// The name leads through a thread of this process, and so nowhere in programs that the process starts: they would load the library
/// under the name of Level Zero's loader, and find its devices without having imported zeusm. A fork's child adds
/// a name of its own, as SYCL initialises its drivers before OpenCL's.
pub fn announce() {
    static ANNOUNCED: Local<()> = Local::new();
    ANNOUNCED.get_or_init(|| {
        let path = maps::file_at(clGetExtensionFunctionAddress as *const () as usize);
        let Some(path) = path.filter(|path| path.is_absolute()) else {
            return;
        };
        // The number of the first thread is that of the process.
        let root = format!("/proc/self/task/{}/root", process::id());
        let name = CString::new([root.as_bytes(), path.as_os_str().as_bytes()].concat());
        if let Ok(name) = name {
            environment::append(VARIABLE, &name);
        }
    });
}
