//! File descriptors: those that a program passes, and those that it may close.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;

/// The first number that is none of the standard streams.
pub const FIRST: i32 = 3;

/// Another descriptor for what `descriptor` names in this process.
pub fn duplicate(descriptor: i32) -> Option<File> {
    // SAFETY: duplicating any number is harmless; a number that names nothing is an error.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, FIRST) };
    // SAFETY: the descriptor is new and has no other owner.
    (copy >= 0).then(|| unsafe { File::from_raw_fd(copy) })
}

/// The inode of what `descriptor` names in this process.
pub fn inode(descriptor: i32) -> Option<u64> {
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut about = unsafe { std::mem::zeroed::<libc::stat>() };
    // SAFETY: the query of any number is harmless, and the system writes one structure.
    let result = unsafe { libc::fstat(descriptor, &raw mut about) };
    (result == 0).then_some(about.st_ino)
}

/// A file of the runtime's. Its number is none of the standard streams, which the program may have closed: it would be written by
/// a print. The program may close all descriptors, as daemons do, and open a file of its own that gets the same
/// number: that one is neither used nor closed.
#[derive(Debug)]
pub struct OwnFile {
    file: ManuallyDrop<File>,
    identity: (u64, u64),
}

impl OwnFile {
    /// Takes over a file that has just been opened.
    ///
    /// # Errors
    /// That of `fstat`, or of the duplication.
    pub fn new(file: File) -> io::Result<Self> {
        let file = match file.as_raw_fd() {
            number if number < FIRST => duplicate(number).ok_or_else(io::Error::last_os_error)?,
            _ => file,
        };
        Ok(Self {
            identity: identity(&file)?,
            file: ManuallyDrop::new(file),
        })
    }

    /// The file, unless its descriptor has been closed.
    pub fn get(&self) -> Option<&File> {
        let is_same = identity(&self.file).is_ok_and(|found| found == self.identity);
        is_same.then_some(&*self.file)
    }

    /// Its inode.
    pub fn inode(&self) -> u64 {
        self.identity.1
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if self.get().is_some() {
            // SAFETY: it is dropped here only.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|about| (about.dev(), about.ino()))
}
