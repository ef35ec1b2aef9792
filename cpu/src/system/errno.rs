//! Error numbers of the system, as a person reads them.

use std::io;

/// An error number by name, with the system's words for it.
pub fn named(code: i32) -> String {
    let known = nix::errno::Errno::from_raw(code);
    format!("{known:?} ({})", known.desc())
}

/// Words for an error of the standard library: the number's when it has one.
pub fn explained(error: &io::Error) -> String {
    error
        .raw_os_error()
        .map_or_else(|| error.to_string(), named)
}
