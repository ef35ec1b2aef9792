//! Paths that a program passes as C strings.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The path, which may have any bytes.
pub fn of(text: &CStr) -> PathBuf {
    OsStr::from_bytes(text.to_bytes()).into()
}
