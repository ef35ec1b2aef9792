//! The interpreter: the check that it is the main one, its functions outside of the stable ABI, and functions for its exit.

use std::ffi::CStr;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;

/// The number of the main interpreter.
const MAIN: i64 = 0;

/// Refuses sub-interpreters. Threads that call back into Python attach to the main interpreter, so they would deadlock with a
/// sub-interpreter that waits for them, and the module's static references belong to one interpreter.
///
/// # Errors
/// `ImportError` in a sub-interpreter.
pub(crate) fn expect_main() -> PyResult<()> {
    // SAFETY: the module is being imported, so this thread is attached to an interpreter, which has a number.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if number == MAIN {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "zeusm supports the main interpreter only, and this is a sub-interpreter",
    ))
}

/// A function of CPython that is not in the stable ABI; `None` for an interpreter without it.
///
/// # Safety
/// `F` must be the type that the interpreter's headers give the function.
pub(crate) unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    let process = libloading::os::unix::Library::this();
    // SAFETY: the caller guarantees the type, and the interpreter is never unloaded.
    unsafe { process.get(name) }.ok().map(|found| *found)
}

/// Has Python call a function without arguments when the interpreter exits.
pub(crate) fn at_exit(function: &Bound<'_, PyCFunction>) -> PyResult<()> {
    let atexit = function.py().import("atexit")?;
    atexit.call_method1("register", (function,)).map(drop)
}
