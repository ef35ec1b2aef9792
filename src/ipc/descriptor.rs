//! Descriptor passing: gets the file descriptor of memory or of an event from the process that owns it, over that process's
//! socket, with the status of the export.

use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags};
use zeusm_process::MutexGuard;

use super::Error;
use super::driver::Subject;
use super::exports::{self, Status};
use super::handle::IpcHandle;
use super::identity::is_trusted;
use super::imported_file::{self, ImportedFiles};
use super::socket::{
    COMPLETE, FAILED, FORGED, FREED, LIVE, LIVE_WITH_DESCRIPTOR, check_client, name, peer_user,
};

/// The timeout of [`IpcHandle::open`] for the answer of the memory's owner, which may be busy.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The answer of the process that made a handle, and the lock under which it was received.
pub struct Received {
    /// The descriptor of the memory or of the event's pool, if the driver uses one.
    pub descriptor: Option<OwnedFd>,
    /// Of an event of another process, what tells that this has ended.
    pub lifeline: Option<OwnedFd>,
    /// Whether it is an event that is complete, which has no descriptors.
    pub is_complete: bool,
    pub files: MutexGuard<'static, ImportedFiles>,
}

/// The descriptors for a handle. When this returns `Ok`, a trusted process has confirmed that it owns what the handle names, and
/// that it made the handle with this content. A signal ends the wait for it.
///
/// # Errors
/// [`Error::Forged`], [`Error::Untrusted`], [`Error::Freed`], [`Error::ExporterGone`], [`Error::Unreachable`],
/// [`Error::Interrupted`], [`Error::LevelZero`] for an event whose operation has failed, and [`Error::System`] when the system is
/// short of a resource.
pub fn receive(handle: &IpcHandle) -> Result<Received, Error> {
    if exports::is_own(handle) {
        let files = imported_file::lock();
        let found = exports::find(handle, &files)?;
        let (is_complete, descriptor) = match found {
            Status::Forged => return Err(Error::Forged(handle.process)),
            Status::Freed => return Err(Error::Freed(handle.process)),
            Status::Failed => return Err(has_failed(handle.process)),
            Status::Complete => (true, None),
            Status::Live(descriptor) => (false, descriptor),
        };
        return Ok(Received {
            descriptor,
            lifeline: None,
            is_complete,
            files,
        });
    }
    let process = handle.process;
    let failed = |cause| explain(process, cause);
    let stream = connect(handle).map_err(failed)?;
    // The socket's name comes from the handle, so a forged handle may name any process's socket.
    let server = peer_user(&stream).map_err(failed)?;
    let user = server.as_raw();
    if !is_trusted(user) {
        return Err(Error::Untrusted { process, user });
    }
    check_client(server, rustix::process::geteuid()).map_err(failed)?;
    (&stream).write_all(&handle.to_bytes()).map_err(failed)?;
    wait_readable(&stream).map_err(failed)?;
    let files = imported_file::lock();
    let (status, descriptors) = read(&stream).map_err(failed)?;
    let mut descriptors = descriptors.into_iter();
    let is_event = handle.subject == Subject::Event;
    let lifeline = if is_event { descriptors.next() } else { None };
    let descriptor = match (status, descriptors.next()) {
        (FORGED, None) => return Err(Error::Forged(process)),
        (FREED, None) => return Err(Error::Freed(process)),
        (FAILED, None) => return Err(has_failed(process)),
        (COMPLETE | LIVE, None) => None,
        (LIVE_WITH_DESCRIPTOR, Some(descriptor)) => Some(descriptor),
        _ => return Err(failed(io::ErrorKind::InvalidData.into())),
    };
    let is_complete = status == COMPLETE;
    Ok(Received {
        descriptor,
        lifeline,
        is_complete,
        files,
    })
}

/// The error for an event whose operation has failed in its process.
fn has_failed(process: u32) -> Error {
    crate::error::Error::ProducerFailed(process).into()
}

/// The error for a failure at the socket of a process.
fn explain(process: u32, cause: io::Error) -> Error {
    match cause.kind() {
        io::ErrorKind::Interrupted => Error::Interrupted(process),
        io::ErrorKind::ConnectionRefused => Error::ExporterGone(process),
        _ => match Errno::from_io_error(&cause) {
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => Error::System {
                what: "cannot get a descriptor from the process that made the IPC handle",
                cause,
            },
            _ => Error::Unreachable { process, cause },
        },
    }
}

fn connect(handle: &IpcHandle) -> io::Result<UnixStream> {
    let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name(handle.token))?)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    Ok(stream)
}

/// Waits for the answer of the server.
fn wait_readable(stream: &UnixStream) -> io::Result<()> {
    let timeout = Timespec::try_from(ANSWER_TIMEOUT).ok();
    let mut files = [PollFd::new(stream, PollFlags::IN)];
    match rustix::event::poll(&mut files, timeout.as_ref())? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

/// The answer of the server.
fn read(stream: &UnixStream) -> io::Result<(u8, Vec<OwnedFd>)> {
    let mut status = [u8::MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(
            stream,
            &mut [IoSliceMut::new(&mut status)],
            &mut control,
            flags,
        )
    })?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    if received.bytes == 0 {
        let reason = "it closed the connection without an answer";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
    }
    // The kernel drops a descriptor when this process has no free number for it.
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Errno::MFILE.into());
    }
    let [status] = status;
    Ok((status, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_at_the_socket_are_told_apart() {
        let socket = |error: Errno| explain(7, error.into());
        assert!(matches!(socket(Errno::MFILE), Error::System { .. }));
        assert!(matches!(socket(Errno::INTR), Error::Interrupted { .. }));
        assert!(matches!(socket(Errno::CONNREFUSED), Error::ExporterGone(7)));
        assert!(matches!(socket(Errno::PIPE), Error::Unreachable { .. }));
    }

    #[test]
    fn a_connection_that_ends_without_an_answer_is_an_error() -> io::Result<()> {
        let (client, server) = UnixStream::pair()?;
        drop(server);
        let ended = read(&client).map_err(|error| error.kind());
        assert!(matches!(ended, Err(io::ErrorKind::UnexpectedEof)));
        Ok(())
    }
}
