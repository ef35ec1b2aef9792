//! File descriptors that a program passes.

use std::fs::File;
use std::os::fd::FromRawFd;

/// Another descriptor for what `descriptor` names in this process.
pub fn duplicate(descriptor: i32) -> Option<File> {
    // SAFETY: duplicating any number is harmless; a number that names nothing is an error.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    // SAFETY: the descriptor is new and has no other owner.
    (copy >= 0).then(|| unsafe { File::from_raw_fd(copy) })
}
