//! How OpenCL's loader finds the front.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use zeusm_process::{Lazy, maps};

use super::icd::clGetExtensionFunctionAddress;
use crate::system::environment;

/// The variable that names libraries to OpenCL's loader, in addition to those that are installed.
const VARIABLE: &CStr = c"OCL_ICD_FILENAMES";

/// The path of the first thread, without its number, of the root folder that it sees.
const THREAD: &str = "/proc/self/task/";
const ROOT: &str = "/root";
/// The bytes of the number with slashes before it, which a path may have any number of.
const NUMBER: usize = 11;

/// The entry of this library in the variable; none where the library is part of a program.
static ENTRY: Lazy<Option<&[AtomicU8]>> = Lazy::new();

/// Names this library to OpenCL's loader, which reads the variable when the process first uses it.
///
/// The name leads through a thread of this process, and so nowhere in programs that the process starts: they would load the library
/// under the name of Level Zero's loader, and find its devices without having imported zeusm.
pub fn announce() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    ENTRY.get_or_make(|| {
        let path = maps::file_at(clGetExtensionFunctionAddress as *const () as usize)?;
        let thread = [THREAD, &number(), ROOT].concat();
        let name = CString::new([thread.as_bytes(), path.as_os_str().as_bytes()].concat());
        environment::append(VARIABLE, &name.ok()?)
    });
}

/// Makes the name valid in a fork's child, whose parent may not have used OpenCL yet.
pub fn child() {
    if let Some(entry) = ENTRY.get().and_then(Option::as_ref) {
        for (place, digit) in entry[THREAD.len()..].iter().zip(number().bytes()) {
            place.store(digit, Ordering::Relaxed);
        }
    }
}

/// The number of the first thread, which is that of the process.
fn number() -> String {
    let number = process::id().to_string();
    ["/".repeat(NUMBER - number.len()), number].concat()
}
