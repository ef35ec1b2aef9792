//! A descriptor that a driver opens memory by. Intel's driver closes it for host memory and leaves it open for all other
//! memory, and the specification says nothing of either.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::io::fcntl_dupfd_cloexec;

use super::identity::File;

/// Compares two descriptors (Linux 6.10, `F_DUPFD_QUERY` of its `fcntl.h`).
const F_DUPFD_QUERY: i32 = 1024 + 3;

/// A descriptor in a driver's hands, closed when dropped if the driver has not done so.
///
/// The number alone does not tell: once the driver has closed it, another thread may get it for a file of its own. A
/// second descriptor of the same open file tells the two apart, as long as no other thread can get one of this open
/// file meanwhile; [`super::mapping`] fetches and opens the descriptors of one allocation under one lock.
pub struct Lent {
    kept: OwnedFd,
    number: RawFd,
}

impl Lent {
    /// Another descriptor of `kept`'s file, of that `number` if it is free.
    pub fn new(kept: OwnedFd, number: RawFd) -> io::Result<Self> {
        // A number beyond this process's limit cannot be had.
        let lent = fcntl_dupfd_cloexec(&kept, number).or_else(|_| fcntl_dupfd_cloexec(&kept, 3))?;
        Ok(Self {
            kept,
            number: lent.into_raw_fd(),
        })
    }

    /// What the driver is told.
    pub fn number(&self) -> RawFd {
        self.number
    }

    fn is_still_ours(&self) -> bool {
        // SAFETY: the number is only compared; one that names nothing by now is an error, not undefined.
        let there = unsafe { BorrowedFd::borrow_raw(self.number) };
        File::of(there).is_some_and(|file| File::of(&self.kept) == Some(file))
            && is_one_open_file(self.kept.as_fd(), self.number)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.is_still_ours() {
            // SAFETY: the driver has left it open, so that it is still this value's.
            drop(unsafe { OwnedFd::from_raw_fd(self.number) });
        }
    }
}

/// Whether `number` names the open file that `file` does; true where the kernel is too old to tell.
fn is_one_open_file(file: BorrowedFd<'_>, number: RawFd) -> bool {
    // SAFETY: compares two numbers, whatever they name.
    unsafe { libc::fcntl(file.as_raw_fd(), F_DUPFD_QUERY, number) != 0 }
}
