//! The exporting process's server: a thread that passes descriptors over a Unix socket.

use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use zeusm_process::{AtFork, ForkLock, OwnDescriptor, at_fork};

use super::exports::{self, Status};
use super::handle::IpcHandle;
use super::socket::{
    FORGED, FREED, LIVE, LIVE_WITH_DESCRIPTOR, Token, check_client, name, peer_user,
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
    if let Err(shared) = Arc::try_unwrap(listener)
        && shared.socket.get().is_some()
    {
        // SAFETY: the descriptor is the socket's, and its owner is never dropped.
        unsafe { libc::close(shared.socket.number()) };
        std::mem::forget(shared);
    }
}
at_fork!(Some(prepare), Some(parent), Some(child));

/// The socket that a server of this process listens at, which its thread has, too, until it ends.
struct Listener {
    token: Token,
    socket: OwnDescriptor<UnixListener>,
}

impl Listener {
    fn serve(&self) {
        // Once the program has closed the socket, one of that number is its own, and so are the clients.
        while let Some(socket) = self.socket.get() {
            match socket.accept() {
                // After a failure the client sees the end of the stream, and reports that.
                Ok((stream, _)) => drop(answer(&stream)),
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
        let what = "cannot start to listen for the processes that open handles (socket)";
        Error::System { what, cause }
    })?;
    *server = Some(listener);
    Ok(token)
}

/// Starts the thread of a server.
fn begin(token: Token) -> io::Result<Arc<Listener>> {
    let address = SocketAddr::from_abstract_name(name(token))?;
    let socket = OwnDescriptor::new(UnixListener::bind_addr(&address)?)?;
    let listener = Arc::new(Listener { token, socket });
    let own = Arc::clone(&listener);
    let thread = thread::Builder::new().name("zeusm-ipc".to_owned());
    thread.spawn(move || own.serve())?;
    Ok(listener)
}

fn answer(mut stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    check_client(rustix::process::geteuid(), peer_user(stream)?)?;
    let mut bytes = [0; IpcHandle::LENGTH];
    stream.read_exact(&mut bytes)?;
    let Ok(handle) = IpcHandle::from_bytes(&bytes) else {
        return send(stream, FORGED, None);
    };
    loop {
        // Until the duplicate is closed.
        let files = imported_file::lock();
        match exports::find(&handle, &files) {
            Ok(Status::Forged) => return send(stream, FORGED, None),
            Ok(Status::Freed) => return send(stream, FREED, None),
            Ok(Status::Live(None)) => return send(stream, LIVE, None),
            Ok(Status::Live(Some(descriptor))) => {
                return send(stream, LIVE_WITH_DESCRIPTOR, Some(descriptor));
            }
            Err(_) => drop(files),
        }
        thread::sleep(RETRY_DELAY);
    }
}

fn send(stream: &UnixStream, status: u8, descriptor: Option<OwnedFd>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.as_ref().map(AsFd::as_fd);
    if descriptors.is_some() {
        control.push(SendAncillaryMessage::ScmRights(descriptors.as_slice()));
    }
    let status = [status];
    let content = [IoSlice::new(&status)];
    rustix::net::sendmsg(stream, &content, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

#[cfg(test)]
mod tests;
