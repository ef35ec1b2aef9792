//! Variables that other libraries read.

use std::ffi::{CStr, CString};
use std::slice;
use std::sync::atomic::AtomicU8;

/// Sets a variable, unless it is set.
///
/// Only `zeInit` and the load of the library call this, which come at the start of a program, as the import of zeusm calls them: threads
/// that read the environment at the same time are the program's risk, as with any `setenv`.
pub fn set_default(name: &CStr, value: &CStr) {
    // SAFETY: both are C strings, and the variable is not overwritten.
    unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 0) };
}

/// Adds an entry to a variable that is a list, whose entries have colons between them; as [`set_default`].
///
/// Returns the entry in the environment. It stays where it is, so that a fork's child can write to it without the environment's lock,
/// which another thread of the parent may have held.
pub fn append(name: &CStr, entry: &CStr) -> Option<&'static [AtomicU8]> {
    // SAFETY: the name is a C string, and the value is copied before the variable changes.
    let before = unsafe {
        let found = libc::getenv(name.as_ptr());
        (!found.is_null()).then(|| CStr::from_ptr(found).to_bytes().to_vec())
    };
    let mut text = [name.to_bytes(), b"="].concat();
    if let Some(list) = before.filter(|list| !list.is_empty()) {
        text.extend([&list, b":".as_slice()].concat());
    }
    let length = entry.count_bytes();
    let start = text.len();
    text.extend(entry.to_bytes());
    let text = CString::new(text).ok()?.into_raw();
    // SAFETY: the string is the environment's from here on; it is never freed, and only this entry's bytes are written.
    unsafe {
        libc::putenv(text);
        Some(slice::from_raw_parts(text.add(start).cast(), length))
    }
}
