//! Variables that other libraries read.

use std::ffi::{CStr, CString};

/// Sets a variable, unless it is set.
///
/// Only `zeInit` and the load of the library call this, which come at the start of a program, as the import of zeusm calls them, and a
/// fork's child, which has one thread: threads that read the environment at the same time are the program's risk, as with any `setenv`.
pub fn set_default(name: &CStr, value: &CStr) {
    // SAFETY: both are C strings, and the variable is not overwritten.
    unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 0) };
}

/// Adds an entry to a variable that is a list, whose entries have colons between them; as [`set_default`].
pub fn append(name: &CStr, entry: &CStr) {
    // SAFETY: the name is a C string, and the value is copied before the variable changes.
    let before = unsafe {
        let found = libc::getenv(name.as_ptr());
        (!found.is_null()).then(|| CStr::from_ptr(found).to_bytes().to_vec())
    };
    let before = before.filter(|list| !list.is_empty());
    let list = before.map(|list| [&list, b":".as_slice(), entry.to_bytes()].concat());
    let value = list.map_or_else(|| Ok(entry.to_owned()), CString::new);
    if let Ok(value) = value {
        // SAFETY: both are C strings.
        unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
    }
}
