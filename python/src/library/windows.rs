//! The library that has the interpreter's functions: `python313.dll` and its like, as `python3.dll` has the stable ABI only.

use std::ffi::CStr;

use libloading::os::windows::Library;
use pyo3::ffi;

pub(crate) fn of_the_interpreter() -> Option<Library> {
    // SAFETY: the version is a static text, such as `3.13.2 (tags/v3.13.2:4f8bb39, ...)`.
    let version = unsafe { CStr::from_ptr(ffi::Py_GetVersion()) }
        .to_str()
        .ok()?;
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next()?, numbers.next()?);
    Library::open_already_loaded(format!("python{major}{minor}.dll")).ok()
}
