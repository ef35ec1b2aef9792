//! Error numbers of the system, in readable form.

use std::io;

/// An error number's name and the system's description.
pub fn named(code: i32) -> String {
    let known = nix::errno::Errno::from_raw(code);
    format!("{known:?} ({})", known.desc())
}

/// The description of an error of the standard library: its error number's, if it has one.
pub fn explained(error: &io::Error) -> String {
    error
        .raw_os_error()
        .map_or_else(|| error.to_string(), named)
}
