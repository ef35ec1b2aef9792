//! Descriptor passing: gets the memory's file descriptor from the process that owns the memory, with the status of the
//! export.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};
use zeusm_process::{FileId, MutexGuard};

use super::Error;
use super::export_table::{self, RemoteTable};
use super::handle::IpcHandle;
use super::identity::is_trusted;
use super::imported_file::{self, ImportedFiles};
use super::server::{self, ExportStatus};

/// A descriptor of another process's memory, if the driver uses one, and the lock under which it was received.
pub struct Received {
    pub descriptor: Option<OwnedFd>,
    pub files: MutexGuard<'static, ImportedFiles>,
}

/// The descriptor of a handle's memory. When this returns `Ok`, a trusted process has confirmed
/// that it owns the memory and that it made the handle with this content.
///
/// # Errors
/// [`Error::Forged`], [`Error::Untrusted`], [`Error::Freed`], [`Error::ExporterGone`], [`Error::Unreachable`],
/// [`Error::Interrupted`], and [`Error::System`] when the system is short of a resource.
pub fn receive(handle: &IpcHandle) -> Result<Received, Error> {
    let process = handle.process;
    let files = imported_file::lock();
    let (status, files) = match in_this_process(handle)? {
        Some(status) => (status, files),
        None => match duplicate(handle) {
            Ok(status) => (status, files),
            Err(Failure::Shortage(cause)) => return Err(shortage(cause)),
            // A process without an id here may be in another PID namespace, and its socket be reachable.
            Err(failure) => {
                drop(files); // The server may take long to answer.
                server::request(handle, imported_file::lock)
                    .map_err(|socket| unreachable(process, failure, socket))?
            }
        },
    };
    match status {
        ExportStatus::Forged => Err(Error::Forged { process }),
        ExportStatus::Untrusted(user) => Err(Error::Untrusted { process, user }),
        ExportStatus::Freed => Err(Error::Freed { process }),
        ExportStatus::Live(descriptor) => Ok(Received { descriptor, files }),
    }
}

fn shortage(cause: Errno) -> Error {
    Error::System {
        what: "cannot duplicate the descriptor of the memory from its owner",
        cause: cause.into(),
    }
}

fn unreachable(process: u32, failure: Failure, socket: io::Error) -> Error {
    if socket.kind() == io::ErrorKind::Interrupted {
        return Error::Interrupted { process };
    }
    if let Some(cause) = Errno::from_io_error(&socket).filter(|cause| is_shortage(*cause)) {
        return shortage(cause);
    }
    let forbidden = match failure {
        Failure::Gone if socket.kind() == io::ErrorKind::ConnectionRefused => {
            return Error::ExporterGone { process };
        }
        Failure::Gone => Errno::SRCH,
        Failure::Forbidden(cause) | Failure::Shortage(cause) => cause,
    };
    Error::Unreachable {
        process,
        forbidden: forbidden.into(),
        socket,
    }
}

/// The status of an export of this process; `None` when another process made the handle.
fn in_this_process(handle: &IpcHandle) -> Result<Option<ExportStatus>, Error> {
    let table = export_table::lock();
    let Some(table) = table.as_ref().filter(|it| it.token == handle.entry.token) else {
        return Ok(None);
    };
    if !handle.is_authenticated_by(&table.key) {
        return Ok(Some(ExportStatus::Forged));
    }
    let Some(descriptor) = table.find(handle.entry.id) else {
        return Ok(Some(ExportStatus::Freed));
    };
    // It stays open meanwhile, as an export ends under the table's lock.
    let descriptor = descriptor.map(|descriptor| rustix::io::fcntl_dupfd_cloexec(descriptor, 3));
    let descriptor = descriptor.transpose().map_err(shortage)?;
    Ok(Some(ExportStatus::Live(descriptor)))
}

/// Whether this process made the handle, if it is authentic.
pub fn is_own(handle: &IpcHandle) -> bool {
    let table = export_table::lock();
    table
        .as_ref()
        .is_some_and(|it| it.token == handle.entry.token)
}

/// Why a descriptor of another process could not be duplicated.
enum Failure {
    /// No process of this PID namespace has the id and the export table: it has exited, or is in another namespace.
    Gone,
    /// The system does not permit it, or does not have the system call.
    Forbidden(Errno),
    /// The system is short of a resource.
    Shortage(Errno),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        match error {
            Errno::SRCH => Self::Gone,
            error if is_shortage(error) => Self::Shortage(error),
            error => Self::Forbidden(error),
        }
    }
}

/// Whether the failure is temporary.
fn is_shortage(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

/// Duplicates the descriptors of the export table and of the memory with `pidfd_getfd`.
fn duplicate(handle: &IpcHandle) -> Result<ExportStatus, Failure> {
    let process = Pid::from_raw(handle.process.cast_signed()).ok_or(Failure::Gone)?;
    let process = match rustix::process::pidfd_open(process, PidfdFlags::empty()) {
        Err(Errno::INVAL) => return Err(Failure::Gone),
        process => process?,
    };
    // `None` when the descriptor refers to another file in the meantime.
    let get = |number, expected| match rustix::process::pidfd_getfd(
        &process,
        number,
        PidfdGetfdFlags::empty(),
    ) {
        Err(Errno::BADF) => Ok(None),
        file => Ok::<_, Failure>(Some(file?).filter(|file| FileId::of(file) == Some(expected))),
    };
    let entry = &handle.entry;
    let table = get(entry.descriptor, entry.file)?;
    let table = table.and_then(RemoteTable::read).ok_or(Failure::Gone)?;
    if !is_trusted(table.owner) {
        return Ok(ExportStatus::Untrusted(table.owner));
    }
    if !handle.is_authenticated_by(&table.key) {
        return Ok(ExportStatus::Forged);
    }
    let descriptor = match handle.file {
        None => None,
        Some(expected) => match get(handle.driver_handle.descriptor(), expected)? {
            Some(file) => Some(file),
            None => return Ok(ExportStatus::Freed),
        },
    };
    // The last check: an export that is live now was live when its descriptor was duplicated.
    if table.is_live(entry) {
        Ok(ExportStatus::Live(descriptor))
    } else {
        Ok(ExportStatus::Freed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_pidfd_getfd_are_classified() {
        assert!(matches!(Failure::from(Errno::SRCH), Failure::Gone));
        for error in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            let failure = Failure::from(error);
            assert!(matches!(failure, Failure::Shortage(cause) if cause == error));
        }
        for error in [Errno::PERM, Errno::NOSYS] {
            let failure = Failure::from(error);
            assert!(matches!(failure, Failure::Forbidden(cause) if cause == error));
        }
    }

    #[test]
    fn a_shortage_at_the_socket_is_not_reported_as_a_missing_permission() {
        let socket = |error: Errno| unreachable(7, Failure::Forbidden(Errno::PERM), error.into());
        assert!(matches!(socket(Errno::MFILE), Error::System { .. }));
        assert!(matches!(
            socket(Errno::CONNREFUSED),
            Error::Unreachable { process: 7, .. }
        ));
    }

    #[test]
    fn a_process_is_gone_if_no_socket_of_it_is_left() {
        let socket = |error: Errno| unreachable(7, Failure::Gone, error.into());
        assert!(matches!(socket(Errno::MFILE), Error::System { .. }));
        assert!(matches!(
            socket(Errno::CONNREFUSED),
            Error::ExporterGone { process: 7 }
        ));
        assert!(matches!(socket(Errno::PIPE), Error::Unreachable { .. }));
    }
}
