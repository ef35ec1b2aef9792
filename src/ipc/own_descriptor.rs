//! Descriptors that this process may find closed, and their numbers in use for files of the program.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::identity::FileId;

/// The first number that is none of the standard streams.
const FIRST: RawFd = 3;

/// A descriptor of zeusm's. Its number is none of the standard streams, which the program may have closed: prints would go
/// there. The program may close all descriptors, as daemons do, and open a file of its own that gets the same number: that one
/// is neither used nor closed.
#[derive(Debug)]
pub struct OwnDescriptor<T: AsFd = OwnedFd> {
    owner: ManuallyDrop<T>,
    file: FileId,
}

impl<T: AsFd + From<OwnedFd>> OwnDescriptor<T> {
    /// Takes over a descriptor that has just been opened.
    ///
    /// # Errors
    /// That of `fstat`, or of the duplication.
    pub fn new(owner: T) -> io::Result<Self> {
        let owner = match owner.as_fd().as_raw_fd() {
            number if number < FIRST => fcntl_dupfd_cloexec(&owner, FIRST)?.into(),
            _ => owner,
        };
        Ok(Self {
            file: FileId::of(&owner).ok_or(Errno::BADF)?,
            owner: ManuallyDrop::new(owner),
        })
    }
}

impl<T: AsFd> OwnDescriptor<T> {
    /// The descriptor, unless the program has closed it.
    pub fn get(&self) -> Option<&T> {
        (FileId::of(&*self.owner) == Some(self.file)).then_some(&*self.owner)
    }

    /// The file that it was opened for.
    pub fn file(&self) -> FileId {
        self.file
    }

    /// Its number, which may be that of a file of the program by now.
    pub fn number(&self) -> RawFd {
        self.owner.as_fd().as_raw_fd()
    }
}

impl<T: AsFd> Drop for OwnDescriptor<T> {
    fn drop(&mut self) {
        if self.get().is_some() {
            // SAFETY: it is dropped here only.
            unsafe { ManuallyDrop::drop(&mut self.owner) };
        }
    }
}
