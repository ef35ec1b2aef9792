//! File descriptors: those that a program passes, and those that it may close.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::fstat;
use rustix::io::{Errno, fcntl_dupfd_cloexec};

/// The first number that is none of the standard streams.
pub const FIRST_DESCRIPTOR: RawFd = 3;

/// Another descriptor for what a number names in this process, if it names anything.
pub fn duplicate(number: RawFd) -> Option<File> {
    // SAFETY: the call takes any number, and fails for one that names nothing.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR) };
    // SAFETY: the descriptor is new and has no other owner.
    (copy >= 0).then(|| unsafe { File::from_raw_fd(copy) })
}

/// The number of the file that a descriptor's number names in this process, if it names one.
pub fn inode(number: RawFd) -> Option<u64> {
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut about = unsafe { std::mem::zeroed::<libc::stat>() };
    // SAFETY: the call takes any number, and the system writes one structure.
    let result = unsafe { libc::fstat(number, &raw mut about) };
    (result == 0).then_some(about.st_ino)
}

/// Identifies a file on this machine. A descriptor's number does not, as it may have been reused for another file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device that has the file.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

impl FileId {
    /// The file of an open descriptor.
    pub fn of(descriptor: impl AsFd) -> Option<Self> {
        let status = fstat(descriptor).ok()?;
        Some(Self {
            device: status.st_dev,
            inode: status.st_ino,
        })
    }
}

/// A descriptor of the library's. Its number is none of the standard streams, which the program may have closed: prints would go
/// there. The program may close all descriptors, as daemons do, and open a file of its own that gets the same number: that one
/// is neither used nor closed.
#[derive(Debug)]
pub struct OwnDescriptor<T: AsFd = OwnedFd> {
    owner: ManuallyDrop<T>,
    file: FileId,
}

/// A file of the library's.
pub type OwnFile = OwnDescriptor<File>;

impl<T: AsFd + From<OwnedFd>> OwnDescriptor<T> {
    /// Takes over a descriptor that has just been opened.
    ///
    /// # Errors
    /// That of `fstat`, or of the duplication.
    pub fn new(owner: T) -> io::Result<Self> {
        let owner = match owner.as_fd().as_raw_fd() {
            number if number < FIRST_DESCRIPTOR => {
                fcntl_dupfd_cloexec(&owner, FIRST_DESCRIPTOR)?.into()
            }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::testing::in_child;

    fn null() -> File {
        File::open("/dev/null").unwrap()
    }

    #[test]
    fn a_descriptor_is_used_and_closed_while_it_is_the_librarys() {
        in_child(|| {
            let own = OwnFile::new(null()).unwrap();
            let number = own.number();
            assert_eq!(own.get().and_then(FileId::of), Some(own.file()));
            drop(own);
            assert_eq!(inode(number), None);
            let own = OwnFile::new(null()).unwrap();
            // The program closes the number, and opens a file of its own that gets it.
            // SAFETY: the child has one thread, which uses the number no more.
            unsafe { libc::close(own.number()) };
            let other = File::open("/dev/zero").unwrap();
            assert_eq!(other.as_raw_fd(), own.number());
            assert!(own.get().is_none());
            drop(own);
            assert!(FileId::of(&other).is_some());
        });
    }

    #[test]
    fn no_descriptor_has_the_number_of_a_standard_stream() {
        in_child(|| {
            // SAFETY: the child reads nothing.
            unsafe { libc::close(0) };
            let file = null();
            assert_eq!(file.as_raw_fd(), 0);
            let own = OwnFile::new(file).unwrap();
            assert!(own.number() >= FIRST_DESCRIPTOR && own.get().is_some());
            assert_eq!(inode(0), None);
        });
    }
}
