//! The errors of requests.

use std::ffi::c_int;
use std::io;

/// An error number of `errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) c_int);

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

/// The answer to a request, which is in its structure.
pub(super) type IoctlResult = Result<(), Errno>;
