//! The exporting process's server: passes descriptors over a Unix socket where the system forbids `pidfd_getfd`.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use rustix::process::Uid;
use zeusm_process::{FileId, ForkLock, Local, Mutex, OwnDescriptor, RwLock, at_fork, held_at_fork};

use super::export_table;
use super::handle::IpcHandle;
use super::identity::is_trusted;

/// The server's timeout for one connection, which blocks the others meanwhile.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout of [`IpcHandle::open`] for the answer of the memory's owner, which may be busy.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The delay between two attempts to accept while descriptors or memory are short.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// The attempts to bind the address of a retired server, and the delay between two of them.
const ADDRESS_RETRIES: u32 = 100;
const ADDRESS_DELAY: Duration = Duration::from_millis(1);

const FREED: u8 = 0;
const LIVE: u8 = 1;
const LIVE_WITH_DESCRIPTOR: u8 = 2;
const FORGED: u8 = 3;

/// The status of the export that a handle names.
pub enum ExportStatus {
    /// The owner did not make the handle, or not with this content.
    Forged,
    /// The owner is a process of this user, which is not trusted.
    Untrusted(u32),
    /// The memory has been freed.
    Freed,
    /// The export is live; the memory's descriptor, if the driver has one.
    Live(Option<OwnedFd>),
}

/// This process's server.
static SERVER: Local<Mutex<Option<Server>>> = Local::new();

struct Server {
    token: [u8; 16],
    /// The thread has it, too, until it ends.
    listener: Arc<Listener>,
}

/// The descriptor of this process's socket, or -1.
static LISTENER: AtomicI32 = AtomicI32::new(-1);
/// Its file's device and inode.
static FILE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Held while the socket is made: a fork's child would not know of it.
static BINDING: ForkLock<RwLock<()>> = ForkLock::new(RwLock::new(()));
held_at_fork!(BINDING);

/// A fork's child has no thread that answers: clients would connect to its copy of the socket after the end of its parent,
/// and wait.
extern "C" fn close_in_child() {
    let listener = LISTENER.swap(-1, Ordering::Relaxed);
    if listener < 0 {
        return;
    }
    // SAFETY: the call takes any number, and fails for one that is no open descriptor.
    if unsafe { libc::fcntl(listener, libc::F_GETFD) } < 0 {
        return;
    }
    // SAFETY: the descriptor is open, and stays open during the query, as the child has one thread.
    if is_socket(unsafe { BorrowedFd::borrow_raw(listener) }) {
        // SAFETY: the descriptor is the socket's, whose owner is on the stack of a thread that the child does not have.
        unsafe { libc::close(listener) };
    }
}
at_fork!(None, None, Some(close_in_child));

fn read(number: &AtomicU64) -> u64 {
    number.load(Ordering::Relaxed)
}

/// The socket that a server of this process listens at.
struct Listener {
    socket: OwnDescriptor<UnixListener>,
    /// Whether the server is to end.
    is_retired: AtomicBool,
}

impl Listener {
    fn bind(address: &SocketAddr) -> io::Result<Self> {
        let _binding = BINDING.write();
        let socket = OwnDescriptor::new(UnixListener::bind_addr(address)?)?;
        let file = socket.file();
        FILE[0].store(file.device, Ordering::Relaxed);
        FILE[1].store(file.inode, Ordering::Relaxed);
        LISTENER.store(socket.number(), Ordering::Relaxed);
        Ok(Self {
            socket,
            is_retired: AtomicBool::new(false),
        })
    }

    /// As [`bind`](Self::bind), where a retired server may be about to leave the address.
    fn bind_after_another(address: &SocketAddr) -> io::Result<Self> {
        for _ in 0..ADDRESS_RETRIES {
            match Self::bind(address) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    thread::sleep(ADDRESS_DELAY);
                }
                bound => return bound,
            }
        }
        Self::bind(address)
    }

    /// The socket, unless the server is to end, or the program has closed the socket: one of that number is its own then, and
    /// so are the clients.
    fn socket(&self) -> Option<&UnixListener> {
        let is_retired = self.is_retired.load(Ordering::Relaxed);
        self.socket.get().filter(|_| !is_retired)
    }
}

/// Whether a descriptor is that of the server's socket.
fn is_socket(descriptor: impl AsFd) -> bool {
    let found = FileId::of(descriptor);
    found.map(|file| [file.device, file.inode]) == Some(FILE.each_ref().map(read))
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _binding = BINDING.write();
        let file = self.socket.file();
        // The next server's may be there already.
        if [file.device, file.inode] == FILE.each_ref().map(read) {
            LISTENER.store(-1, Ordering::Relaxed);
        }
    }
}

impl Server {
    fn start(token: [u8; 16], bind: fn(&SocketAddr) -> io::Result<Listener>) -> io::Result<Self> {
        let listener = Arc::new(bind(&address(token)?)?);
        let own = Arc::clone(&listener);
        thread::Builder::new()
            .name("zeusm-ipc".to_owned())
            .spawn(move || {
                while let Some(socket) = own.socket() {
                    match socket.accept() {
                        // After a failure the client sees the end of the stream, and reports that.
                        Ok((stream, _)) => drop(answer(&stream)),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(_) => thread::sleep(RETRY_DELAY),
                    }
                }
            })?;
        Ok(Self { token, listener })
    }

    /// Has the thread end, which may wait for a client for ever: at a socket that the program has closed, too.
    fn retire(self) {
        self.listener.is_retired.store(true, Ordering::Relaxed);
        // It may have ended. If too many clients wait, these wake it.
        let _ = wake(self.token);
    }
}

/// Connects to a server of this process for a moment, without waiting for it.
fn wake(token: [u8; 16]) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let client = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let place = SocketAddrUnix::new_abstract_name(name(token).as_bytes())?;
    Ok(rustix::net::connect(&client, &place)?)
}

/// The name identifies the process. It is no secret, as /proc/net/unix lists it: the server checks each client's user, and
/// the tag of each handle.
fn name(token: [u8; 16]) -> String {
    format!("zeusm-ipc-{:032x}", u128::from_ne_bytes(token))
}

fn address(token: [u8; 16]) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name(token))
}

/// Starts the server's thread unless it runs; it runs until the process exits, or the program closes its socket, or the export
/// table has another token. If the start fails for a shortage of descriptors or threads, the next export tries again.
pub fn start(token: [u8; 16]) {
    let mut server = SERVER.get_or_default().lock();
    let runs = |it: &Server| it.token == token && it.listener.socket().is_some();
    if server.as_ref().is_some_and(runs) {
        return;
    }
    let bind = match server.take() {
        Some(former) => {
            former.retire();
            Listener::bind_after_another
        }
        None => Listener::bind,
    };
    *server = Server::start(token, bind).ok();
}

/// Whether a server of one user accepts a client of another.
fn check_client(server: Uid, client: Uid) -> io::Result<()> {
    if client == server || client.is_root() {
        return Ok(());
    }
    let reason = "it answers processes of its own user and of root only";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// The effective user of the process at the other end. The process id that the kernel gives with it is 0 where that process
/// is not in this PID namespace, which rustix's type of it does not permit, so it is not read.
fn peer_user(stream: &UnixStream) -> io::Result<Uid> {
    let mut peer = MaybeUninit::<libc::ucred>::zeroed();
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes of the credentials; zeros are valid ones.
    let (answer, peer) = unsafe {
        let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        let value = peer.as_mut_ptr().cast();
        let answer = libc::getsockopt(stream.as_raw_fd(), level, name, value, &raw mut size);
        (answer, peer.assume_init())
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Uid::from_raw(peer.uid))
}

fn answer(mut stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(SERVER_TIMEOUT))?;
    stream.set_write_timeout(Some(SERVER_TIMEOUT))?;
    let client = peer_user(stream)?;
    check_client(rustix::process::geteuid(), client)?;
    let mut bytes = [0; IpcHandle::LENGTH];
    stream.read_exact(&mut bytes)?;
    let handle = IpcHandle::from_bytes(&bytes).ok();
    // The table stays locked until the reply is sent: exports are removed under the lock, so the descriptor stays open.
    let guard = export_table::lock();
    let (status, descriptor) = match handle.zip(guard.as_ref()) {
        // Of a table whose file the program has closed.
        Some((handle, table)) if handle.entry.token != table.token => (FREED, None),
        Some((handle, table)) if handle.is_authenticated_by(&table.key) => {
            match table.find(handle.entry.id) {
                None => (FREED, None),
                Some(None) => (LIVE, None),
                Some(descriptor) => (LIVE_WITH_DESCRIPTOR, descriptor),
            }
        }
        _ => (FORGED, None),
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(descriptor) = &descriptor {
        control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(
            descriptor,
        )));
    }
    let status = [status];
    rustix::net::sendmsg(
        stream,
        &[IoSlice::new(&status)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Requests the status and the descriptor of an export from the server of the process that the handle names. The descriptor
/// is received under the lock that `lock` takes. A signal ends the wait for the server: [`io::ErrorKind::Interrupted`].
pub fn request<T>(handle: &IpcHandle, lock: impl FnOnce() -> T) -> io::Result<(ExportStatus, T)> {
    let stream = UnixStream::connect_addr(&address(handle.entry.token)?)?;
    // The socket's name comes from the handle, so a forged handle may name any process's socket.
    let server = peer_user(&stream)?;
    if !is_trusted(server.as_raw()) {
        return Ok((ExportStatus::Untrusted(server.as_raw()), lock()));
    }
    check_client(server, rustix::process::geteuid())?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    (&stream).write_all(&handle.to_bytes())?;
    wait_readable(&stream)?;
    let guard = lock();
    let status = receive(&stream)?;
    Ok((status, guard))
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

/// Receives the answer of the server.
fn receive(stream: &UnixStream) -> io::Result<ExportStatus> {
    let mut status = [u8::MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
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
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    match (status, descriptor) {
        ([FORGED], None) => Ok(ExportStatus::Forged),
        ([FREED], None) => Ok(ExportStatus::Freed),
        ([LIVE], None) => Ok(ExportStatus::Live(None)),
        ([LIVE_WITH_DESCRIPTOR], Some(descriptor)) => Ok(ExportStatus::Live(Some(descriptor))),
        // The kernel drops a descriptor when this process has no free number for it.
        ([LIVE_WITH_DESCRIPTOR], None) if received.flags.contains(ReturnFlags::CTRUNC) => {
            Err(Errno::MFILE.into())
        }
        _ => Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "it closed the connection without an answer",
        )),
    }
}

#[cfg(test)]
mod tests;
