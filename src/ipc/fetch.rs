//! Getting the memory's descriptor from the process that owns the memory, and its word that it still does.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use super::handle::IpcHandle;
use super::ledger::Entry;
use super::server::{self, Said};
use super::{Error, identity, ledger};

/// The descriptor of a handle's memory, if its driver uses one.
///
/// # Errors
/// [`Error::Freed`], [`Error::ExporterGone`] and [`Error::Unreachable`].
pub fn descriptor(handle: &IpcHandle) -> Result<Option<OwnedFd>, Error> {
    let process = handle.process;
    let said = match of_this_process(&handle.entry) {
        Some(said) => said,
        None => match take(handle) {
            Ok(said) => said,
            Err(Refusal::Gone) => return Err(Error::ExporterGone { process }),
            Err(Refusal::Forbidden(forbidden)) => {
                let (token, number) = (handle.entry.token, handle.entry.number);
                server::ask(token, number).map_err(|socket| match socket.kind() {
                    io::ErrorKind::ConnectionRefused => Error::ExporterGone { process },
                    _ => Error::Unreachable {
                        process,
                        forbidden: forbidden.into(),
                        socket,
                    },
                })?
            }
        },
    };
    match said {
        Said::Freed => Err(Error::Freed { process }),
        Said::Live(descriptor) => Ok(descriptor),
    }
}

/// The answer without asking anybody, when the handle was made in this process.
fn of_this_process(entry: &Entry) -> Option<Said> {
    let ledger = ledger::get();
    let ledger = ledger.as_ref().filter(|it| it.token == entry.token)?;
    Some(match ledger.find(entry.number) {
        None => Said::Freed,
        Some(descriptor) => Said::Live(descriptor.and_then(|number| {
            // SAFETY: the driver keeps the descriptor of a live export open, and exports leave under the lock.
            unsafe { BorrowedFd::borrow_raw(number) }
                .try_clone_to_owned()
                .ok()
        })),
    })
}

enum Refusal {
    /// The process has ended, perhaps another has its number.
    Gone,
    /// The system does not allow it, or does not know how.
    Forbidden(Errno),
}

/// Takes the descriptors out of the other process.
fn take(handle: &IpcHandle) -> Result<Said, Refusal> {
    let process = Pid::from_raw(handle.process.cast_signed()).ok_or(Refusal::Gone)?;
    let process = match rustix::process::pidfd_open(process, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH | Errno::INVAL) => return Err(Refusal::Gone),
        Err(error) => return Err(Refusal::Forbidden(error)),
    };
    // The file under that number, when it is still the one that was meant.
    let get = |number, meant| match rustix::process::pidfd_getfd(
        &process,
        number,
        PidfdGetfdFlags::empty(),
    ) {
        Ok(file) => Ok(Some(file).filter(|file| identity::File::of(file) == Some(meant))),
        Err(Errno::BADF) => Ok(None),
        Err(Errno::SRCH) => Err(Refusal::Gone),
        Err(error) => Err(Refusal::Forbidden(error)),
    };
    let entry = &handle.entry;
    let ledger = get(entry.descriptor, entry.file)?.ok_or(Refusal::Gone)?;
    let descriptor = match handle.file {
        None => None,
        Some(meant) => match get(handle.raw.descriptor(), meant)? {
            Some(file) => Some(file),
            None => return Ok(Said::Freed),
        },
    };
    // Last, so that what is found live was live when its descriptor was taken.
    let mut number = [0; 8];
    let read = File::from(ledger).read_exact_at(&mut number, u64::from(entry.place) * 8);
    if read.is_ok() && u64::from_ne_bytes(number) == entry.number {
        Ok(Said::Live(descriptor))
    } else {
        Ok(Said::Freed)
    }
}
