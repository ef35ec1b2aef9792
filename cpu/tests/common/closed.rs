//! A program that closes all descriptors, as daemons do, and opens files of its own.

use std::fs::File;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

/// The content of the program's files.
pub const CONTENT: [u8; 4096] = [7; 4096];

/// A memory file of the program with a known content.
pub fn program_file() -> File {
    let file = unsafe { libc::memfd_create(c"program".as_ptr(), libc::MFD_CLOEXEC) };
    let file = unsafe { File::from_raw_fd(file) };
    file.write_all_at(&CONTENT, 0).unwrap();
    file
}

/// Closes all descriptors but the standard streams.
pub fn close_all() {
    assert_eq!(unsafe { libc::close_range(3, u32::MAX, 0) }, 0);
}
