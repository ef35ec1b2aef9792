//! The exporting process's server: a thread that passes descriptors over a Unix socket.

use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};
use zeusm_process::{AtFork, ForkLock, Mutex, OwnDescriptor, at_fork};

use super::exports::{self, Status, Token};
use super::handle::IpcHandle;
use super::socket::{FORGED, FREED, LIVE, LIVE_WITH_DESCRIPTOR, check_client, name, peer_user};
use super::{Error, imported_file};

/// The timeout for one connection, which blocks the others meanwhile.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The delay between two attempts to accept, or to answer, while descriptors or memory are short.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// The delay between two attempts to bind the address of a former server, which may answer a client until the timeout.
const ADDRESS_DELAY: Duration = Duration::from_millis(1);

/// This process's server, if it has one.
static SERVER: ForkLock<Mutex<Option<Arc<Listener>>>> = ForkLock::new(Mutex::new(None));

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
    socket: OwnDescriptor<UnixListener>,
    /// Whether the server is to end.
    is_retired: AtomicBool,
}

impl Listener {
    fn bind(token: Token) -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(name(token))?;
        Ok(Self {
            socket: OwnDescriptor::new(UnixListener::bind_addr(&address)?)?,
            is_retired: AtomicBool::new(false),
        })
    }

    /// The socket, unless the server is to end, or the program has closed the socket: one of that number is its own then, and
    /// so are the clients.
    fn socket(&self) -> Option<&UnixListener> {
        let is_retired = self.is_retired.load(Ordering::Relaxed);
        self.socket.get().filter(|_| !is_retired)
    }

    fn serve(&self) {
        while let Some(socket) = self.socket() {
            match socket.accept() {
                // After a failure the client sees the end of the stream, and reports that.
                Ok((stream, _)) => drop(answer(&stream)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => thread::sleep(RETRY_DELAY),
            }
        }
    }
}

/// Starts the server unless it runs; it runs until the process exits, or the program closes its socket.
///
/// # Errors
/// [`Error::System`] for a shortage of descriptors or threads, or a filter of system calls; the next export tries again.
pub fn start(token: Token) -> Result<(), Error> {
    let mut server = SERVER.lock();
    if server.as_ref().is_some_and(|it| it.socket().is_some()) {
        return Ok(());
    }
    let former = server.take();
    let listener = match &former {
        None => Listener::bind(token),
        Some(former) => replace(former, token),
    };
    let begun = listener.and_then(|listener| {
        let listener = Arc::new(listener);
        let own = Arc::clone(&listener);
        let thread = thread::Builder::new().name("zeusm-ipc".to_owned());
        thread.spawn(move || own.serve())?;
        Ok(listener)
    });
    match begun {
        Ok(listener) => {
            *server = Some(listener);
            Ok(())
        }
        Err(cause) => {
            *server = former;
            let what = "cannot start to listen for the processes that open handles (socket)";
            Err(Error::System { what, cause })
        }
    }
}

/// Has the thread of a former server end, which may wait for a client for ever, at a socket that the program has closed, and
/// takes its address.
fn replace(former: &Listener, token: Token) -> io::Result<Listener> {
    former.is_retired.store(true, Ordering::Relaxed);
    // It may have ended. If too many clients wait, these wake it.
    let _ = wake(token);
    let begun = Instant::now();
    loop {
        match Listener::bind(token) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && begun.elapsed() < 2 * TIMEOUT =>
            {
                thread::sleep(ADDRESS_DELAY);
            }
            bound => return bound,
        }
    }
}

/// Connects to a server of this process for a moment, without waiting for it.
fn wake(token: Token) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let client = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let place = SocketAddrUnix::new_abstract_name(name(token).as_bytes())?;
    Ok(rustix::net::connect(&client, &place)?)
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
