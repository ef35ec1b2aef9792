//! Error numbers of the system, in readable form.

use std::io;

/// Error numbers with their names: those of the calls that the runtime reports.
macro_rules! names {
    ($($name:ident)*) => {
        const NAMES: &[(i32, &str)] = &[$((libc::$name, stringify!($name))),*];
    };
}

names! {
    EPERM ENOENT EINTR EIO ENXIO EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE
    ETXTBSY EFBIG ENOSPC EROFS EPIPE ENAMETOOLONG ENOSYS ELOOP EOVERFLOW EOPNOTSUPP
}

/// An error number's name and the system's description.
pub fn named(code: i32) -> String {
    let known = NAMES.iter().find(|(known, _)| *known == code);
    let text = io::Error::from_raw_os_error(code).to_string();
    match known {
        Some((_, name)) => {
            let suffix = format!(" (os error {code})");
            format!("{name} ({})", text.trim_end_matches(&suffix))
        }
        None => text,
    }
}

/// The description of an error of the standard library: its error number's, if it has one.
pub fn explained(error: &io::Error) -> String {
    error
        .raw_os_error()
        .map_or_else(|| error.to_string(), named)
}
