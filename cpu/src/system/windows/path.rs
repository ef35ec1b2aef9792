//! Paths that a program passes as C strings.

use std::ffi::CStr;
use std::path::PathBuf;

/// The path, which is in UTF-8.
pub fn of(text: &CStr) -> PathBuf {
    text.to_string_lossy().into_owned().into()
}
