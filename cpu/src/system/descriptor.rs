//! File descriptors: those that a program passes, and those that it may close.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::MetadataExt;

/// Another descriptor for what `descriptor` names in this process.
pub fn duplicate(descriptor: i32) -> Option<File> {
    // SAFETY: duplicating any number is harmless; a number that names nothing is an error.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    // SAFETY: the descriptor is new and has no other owner.
    (copy >= 0).then(|| unsafe { File::from_raw_fd(copy) })
}

/// A file of the runtime's. The program may close all descriptors, as daemons do, and open a file of its own that gets the same
/// number: that one is neither used nor closed.
pub struct OwnFile {
    file: ManuallyDrop<File>,
    identity: (u64, u64),
}

impl OwnFile {
    /// Takes over a file that has just been opened.
    ///
    /// # Errors
    /// That of `fstat`.
    pub fn new(file: File) -> io::Result<Self> {
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
