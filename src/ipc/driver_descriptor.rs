//! A descriptor that is passed to the driver when it opens memory. Intel's driver closes it for host memory, and leaves it
//! open for all other memory; the specification does not define the ownership.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::io::{Errno, fcntl_dupfd_cloexec};
use zeusm_process::{FileId, OwnDescriptor};

/// Compares two descriptors (Linux 6.10, `F_DUPFD_QUERY` of its `fcntl.h`).
const F_DUPFD_QUERY: i32 = 1024 + 3;

/// A descriptor for the driver, closed when dropped unless the driver has closed it.
///
/// The number alone does not show whether the driver has closed it, as another thread may reuse the number for a file of its
/// own. A duplicate of the same open file distinguishes the two cases, as long as no other thread can get a descriptor of
/// this open file meanwhile: allocations of one pool of the driver have one open file, so that descriptors of all memory are
/// received and opened under one lock ([`super::imported_file`]).
pub struct DriverDescriptor {
    duplicate: OwnDescriptor,
    number: RawFd,
}

impl DriverDescriptor {
    /// Duplicates a descriptor to `number` if that is free, else to another number.
    pub fn new(descriptor: OwnedFd, number: RawFd) -> io::Result<Self> {
        // The number may be beyond this process's limit.
        let duplicated = fcntl_dupfd_cloexec(&descriptor, number)
            .or_else(|_| fcntl_dupfd_cloexec(&descriptor, 3))?;
        Ok(Self {
            duplicate: OwnDescriptor::new(descriptor)?,
            number: duplicated.into_raw_fd(),
        })
    }

    /// The same with another number, `number` or the next that is free; fails if the program has closed the descriptor.
    pub fn renumbered(self, number: RawFd) -> io::Result<Self> {
        let descriptor = self.duplicate.get().ok_or(Errno::BADF)?.try_clone()?;
        drop(self);
        Self::new(descriptor, number)
    }

    /// The number for the driver.
    pub fn number(&self) -> RawFd {
        self.number
    }

    fn is_open(&self) -> bool {
        // SAFETY: the number is only compared; a number without an open file is an error, and not undefined behaviour.
        let current = unsafe { BorrowedFd::borrow_raw(self.number) };
        FileId::of(current) == Some(self.duplicate.file())
            // Without the duplicate, which the program may have closed, the file's identity has to do.
            && self
                .duplicate
                .get()
                .is_none_or(|duplicate| is_same_open_file(duplicate.as_fd(), self.number))
    }
}

impl Drop for DriverDescriptor {
    fn drop(&mut self) {
        if self.is_open() {
            // SAFETY: the driver has not closed it, so this value still owns it.
            drop(unsafe { OwnedFd::from_raw_fd(self.number) });
        }
    }
}

/// Whether `number` is a descriptor of the same open file; `true` on kernels that do not support the query.
fn is_same_open_file(file: BorrowedFd<'_>, number: RawFd) -> bool {
    // SAFETY: compares two numbers; either may be no descriptor.
    unsafe { libc::fcntl(file.as_raw_fd(), F_DUPFD_QUERY, number) != 0 }
}
