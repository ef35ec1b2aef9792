//! Variables that other libraries read.

use std::ffi::CStr;

/// Sets a variable, unless it is set.
///
/// Only `zeInit` and the load of the library call this, which come at the start of a program, as the import of zeusm calls them:
/// threads that read the environment at the same time are the program's risk, as with any `setenv`.
pub fn set_default(name: &CStr, value: &CStr) {
    // SAFETY: both are C strings, and the variable is not overwritten.
    unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 0) };
}
