//! Getting the memory's descriptor from the process that owns the memory, and its word that it made the handle and still
//! has the memory.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use super::handle::IpcHandle;
use super::identity::is_trusted;
use super::ledger::Foreign;
use super::server::{self, Said};
use super::{Error, identity, ledger};

/// The descriptor of a handle's memory, if its driver uses one. Once this returns, all that the handle says is the word
/// of the process that owns the memory, and that process is trusted.
///
/// # Errors
/// [`Error::Forged`], [`Error::Untrusted`], [`Error::Freed`], [`Error::ExporterGone`], [`Error::Unreachable`], and
/// [`Error::System`] when something is short.
pub fn descriptor(handle: &IpcHandle) -> Result<Option<OwnedFd>, Error> {
    let process = handle.process;
    let said = match of_this_process(handle)? {
        Some(said) => said,
        None => match take(handle) {
            Ok(said) => said,
            Err(Refusal::Gone) => return Err(Error::ExporterGone { process }),
            Err(Refusal::Short(cause)) => return Err(short(cause)),
            Err(Refusal::Forbidden(forbidden)) => {
                server::ask(handle).map_err(|socket| unreachable(process, forbidden, socket))?
            }
        },
    };
    match said {
        Said::Forged => Err(Error::Forged { process }),
        Said::Untrusted(user) => Err(Error::Untrusted { process, user }),
        Said::Freed => Err(Error::Freed { process }),
        Said::Live(descriptor) => Ok(descriptor),
    }
}

fn short(cause: Errno) -> Error {
    Error::System {
        what: "cannot take the descriptor of the memory from its owner",
        cause: cause.into(),
    }
}

fn unreachable(process: u32, forbidden: Errno, socket: io::Error) -> Error {
    if let Some(cause) = Errno::from_io_error(&socket).filter(|cause| is_shortage(*cause)) {
        return short(cause);
    }
    Error::Unreachable {
        process,
        forbidden: forbidden.into(),
        socket,
    }
}

/// The answer without asking anybody, when the handle was made in this process.
fn of_this_process(handle: &IpcHandle) -> Result<Option<Said>, Error> {
    let ledger = ledger::get();
    let Some(ledger) = ledger.as_ref().filter(|it| it.token == handle.entry.token) else {
        return Ok(None);
    };
    if !handle.is_sealed_by(&ledger.key) {
        return Ok(Some(Said::Forged));
    }
    let Some(descriptor) = ledger.find(handle.entry.number) else {
        return Ok(Some(Said::Freed));
    };
    let descriptor = descriptor.map(|number| {
        // SAFETY: the driver keeps the descriptor of a live export open, and exports leave under the lock.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        rustix::io::fcntl_dupfd_cloexec(descriptor, 3)
    });
    let descriptor = descriptor.transpose().map_err(short)?;
    Ok(Some(Said::Live(descriptor)))
}

enum Refusal {
    /// The process has ended, perhaps another has its number.
    Gone,
    /// The system does not allow it, or does not know how.
    Forbidden(Errno),
    /// Something has run out.
    Short(Errno),
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        match error {
            Errno::SRCH => Self::Gone,
            error if is_shortage(error) => Self::Short(error),
            error => Self::Forbidden(error),
        }
    }
}

/// Whether what failed may work in a moment.
fn is_shortage(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

/// Takes the descriptors out of the other process.
fn take(handle: &IpcHandle) -> Result<Said, Refusal> {
    let process = Pid::from_raw(handle.process.cast_signed()).ok_or(Refusal::Gone)?;
    let process = match rustix::process::pidfd_open(process, PidfdFlags::empty()) {
        Err(Errno::INVAL) => return Err(Refusal::Gone),
        process => process?,
    };
    // The file under that number, when it is still the one that was meant.
    let get = |number, meant| match rustix::process::pidfd_getfd(
        &process,
        number,
        PidfdGetfdFlags::empty(),
    ) {
        Err(Errno::BADF) => Ok(None),
        file => {
            Ok::<_, Refusal>(Some(file?).filter(|file| identity::File::of(file) == Some(meant)))
        }
    };
    let entry = &handle.entry;
    let ledger = get(entry.descriptor, entry.file)?;
    let ledger = ledger.and_then(Foreign::read).ok_or(Refusal::Gone)?;
    if !is_trusted(ledger.maker) {
        return Ok(Said::Untrusted(ledger.maker));
    }
    if !handle.is_sealed_by(&ledger.key) {
        return Ok(Said::Forged);
    }
    let descriptor = match handle.file {
        None => None,
        Some(meant) => match get(handle.raw.descriptor(), meant)? {
            Some(file) => Some(file),
            None => return Ok(Said::Freed),
        },
    };
    // Last, so that what is found live was live when its descriptor was taken.
    if ledger.is_live(entry) {
        Ok(Said::Live(descriptor))
    } else {
        Ok(Said::Freed)
    }
}
