//! The exporting process's server: a thread that passes descriptors over a Unix socket.

use std::io::{self, IoSlice, PipeReader, PipeWriter, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use zeusm_process::{AtFork, ForkLock, OwnDescriptor, at_fork};

use super::driver::Subject;
use super::exports::{self, Status};
use super::handle::IpcHandle;
use super::socket::{
    COMPLETE, FAILED, FORGED, FREED, LIVE, LIVE_WITH_DESCRIPTOR, Token, check_client, name,
    peer_user,
};
use super::{Error, imported_file};

/// The timeout for one connection, which blocks the others meanwhile.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The delay between two attempts to accept, or to answer, while descriptors or memory are short.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// This process's server, if it has one.
static SERVER: ForkLock<Option<Arc<Listener>>> = ForkLock::new(None);

extern "C" fn prepare() {
    SERVER.prepare();
}

extern "C" fn parent() {
    SERVER.parent();
}

/// A fork's child has no thread that answers: clients would connect to its copy of the socket after the end of its parent,
/// and wait.
extern "C" fn child() {
    SERVER.child();
    let Some(listener) = SERVER.lock().take() else {
        return;
    };
    // The other owner is on the stack of a thread that the child does not have.
    if let Err(shared) = Arc::try_unwrap(listener) {
        let socket = shared.socket.get().map(AsFd::as_fd);
        let ends = shared.lifeline.get().map(AsFd::as_fd);
        let ends = ends.into_iter().chain(shared.given.get().map(AsFd::as_fd));
        for open in ends.chain(socket) {
            // SAFETY: the descriptor is the listener's, and its owner is never dropped.
            unsafe { libc::close(open.as_raw_fd()) };
        }
        std::mem::forget(shared);
    }
}
at_fork!(Some(prepare), Some(parent), Some(child));

/// The socket that a server of this process listens at, which its thread has, too, until it ends.
struct Listener {
    token: Token,
    socket: OwnDescriptor<UnixListener>,
    /// The end of a pipe that closes when this process ends, or executes another program, and the other end, of which the
    /// processes that open its events get a duplicate.
    lifeline: OwnDescriptor<PipeWriter>,
    given: OwnDescriptor<PipeReader>,
}

impl Listener {
    fn serve(&self) {
        // Once the program has closed the socket, one of that number is its own, and so are the clients.
        while let Some(socket) = self.socket.get() {
            match socket.accept() {
                // After a failure the client sees the end of the stream, and reports that.
                Ok((stream, _)) => drop(self.answer(&stream)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => thread::sleep(RETRY_DELAY),
            }
        }
    }
}

/// Starts the server unless it runs; it runs until the process exits, or the program closes its socket. Its thread may then
/// wait for a last client of handles that name that socket. Returns the name of the socket.
///
/// # Errors
/// [`Error::System`] for a shortage of descriptors or threads, or a filter of system calls; the next export tries again.
pub fn start() -> Result<Token, Error> {
    let mut server = SERVER.lock();
    if let Some(running) = server.as_ref().filter(|it| it.socket.get().is_some()) {
        return Ok(running.token);
    }
    let token = exports::random()?;
    let listener = begin(token).map_err(|cause| {
        let what =
            "cannot start to listen for the processes that open handles (a socket and a thread)";
        Error::System { what, cause }
    })?;
    *server = Some(listener);
    Ok(token)
}

/// Starts the thread of a server.
fn begin(token: Token) -> io::Result<Arc<Listener>> {
    let address = SocketAddr::from_abstract_name(name(token))?;
    let socket = OwnDescriptor::new(UnixListener::bind_addr(&address)?)?;
    let (given, lifeline) = io::pipe()?;
    let listener = Arc::new(Listener {
        token,
        socket,
        lifeline: OwnDescriptor::new(lifeline)?,
        given: OwnDescriptor::new(given)?,
    });
    let own = Arc::clone(&listener);
    let thread = thread::Builder::new().name("zeusm-ipc".to_owned());
    thread.spawn(move || own.serve())?;
    Ok(listener)
}

impl Listener {
    fn answer(&self, mut stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        check_client(rustix::process::geteuid(), peer_user(stream)?)?;
        let mut bytes = [0; IpcHandle::LENGTH];
        stream.read_exact(&mut bytes)?;
        let Ok(handle) = IpcHandle::parse(&bytes) else {
            return send(stream, FORGED, &[]);
        };
        loop {
            // Until the duplicate is closed.
            let files = imported_file::lock();
            match exports::find(&handle, &files) {
                Ok(Status::Forged) => return send(stream, FORGED, &[]),
                Ok(Status::Freed) => return send(stream, FREED, &[]),
                Ok(Status::Complete) => return send(stream, COMPLETE, &[]),
                Ok(Status::Failed) => return send(stream, FAILED, &[]),
                Ok(Status::Live(descriptor)) => {
                    let lifeline = match (handle.subject, self.given.get()) {
                        (Subject::Memory(_), _) => None,
                        (Subject::Event, Some(given)) => Some(given.as_fd()),
                        // Nothing would tell the end of this process.
                        (Subject::Event, None) => return send(stream, FREED, &[]),
                    };
                    let status = match descriptor {
                        None => LIVE,
                        Some(_) => LIVE_WITH_DESCRIPTOR,
                    };
                    let descriptor = descriptor.as_ref().map(AsFd::as_fd);
                    let sent: Vec<_> = lifeline.into_iter().chain(descriptor).collect();
                    return send(stream, status, &sent);
                }
                Err(_) => drop(files),
            }
            thread::sleep(RETRY_DELAY);
        }
    }
}

fn send(stream: &UnixStream, status: u8, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let status = [status];
    let content = [IoSlice::new(&status)];
    rustix::net::sendmsg(stream, &content, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

#[cfg(test)]
mod tests;
