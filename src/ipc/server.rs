//! The exporting process's socket: gives out descriptors where the system forbids taking them.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::Uid;

use super::handle::IpcHandle;
use super::identity::is_trusted;
use super::ledger;
use crate::process::{Local, Mutex};

/// How long a connection may hold up the others.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a busy process may take to answer.
const LONG_PATIENCE: Duration = Duration::from_secs(60);

/// Between two attempts to accept while descriptors or memory are short, which no event tells the end of.
const SHORTAGE: Duration = Duration::from_millis(20);

const FREED: u8 = 0;
const LIVE: u8 = 1;
const LIVE_WITH_DESCRIPTOR: u8 = 2;
const FORGED: u8 = 3;

/// What the owner says of a handle.
pub enum Said {
    /// It did not make the handle, or not as it is.
    Forged,
    /// The handle is another user's, whose word does not count.
    Untrusted(u32),
    /// The memory has been freed.
    Freed,
    /// It is live; its descriptor, if the driver has one.
    Live(Option<OwnedFd>),
}

/// Whether this process serves.
static SERVING: Local<Mutex<bool>> = Local::new();

/// The name holds the process's secret, so nobody finds it who was given no handle.
fn address(token: [u8; 16]) -> io::Result<SocketAddr> {
    let token = u128::from_ne_bytes(token);
    SocketAddr::from_abstract_name(format!("zeusm-ipc-{token:032x}"))
}

/// Begins to serve, in a thread that ends with the process, unless it already does. Where that fails, as descriptors or
/// threads are short, the next export tries again.
pub fn serve(token: [u8; 16]) {
    let mut serving = SERVING.get_or_default().lock();
    if !*serving {
        *serving = start(token).is_ok();
    }
}

fn start(token: [u8; 16]) -> io::Result<()> {
    let listener = UnixListener::bind_addr(&address(token)?)?;
    thread::Builder::new()
        .name("zeusm-ipc".to_owned())
        .spawn(move || {
            loop {
                match listener.accept() {
                    // Whoever asked sees the stream end, and says what went wrong.
                    Ok((stream, _)) => drop(answer(&stream)),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => thread::sleep(SHORTAGE),
                }
            }
        })
        .map(drop)
}

/// Whether a process of one user answers those of another.
fn serves(user: Uid, asker: Uid) -> io::Result<()> {
    if asker == user || asker.is_root() {
        return Ok(());
    }
    let reason = "it answers processes of its own user and of root only";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

fn answer(mut stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let asker = rustix::net::sockopt::socket_peercred(stream)?.uid;
    serves(rustix::process::geteuid(), asker)?;
    let mut bytes = [0; IpcHandle::LENGTH];
    stream.read_exact(&mut bytes)?;
    let handle = IpcHandle::from_bytes(&bytes).ok();
    // Until the answer is sent the ledger stays locked, so that the descriptor cannot be closed under it.
    let guard = ledger::get();
    let ledger = guard.as_ref();
    let handle =
        handle.filter(|handle| ledger.is_some_and(|ledger| handle.is_sealed_by(&ledger.key)));
    let found = handle.as_ref().zip(ledger);
    let found = found.map(|(handle, ledger)| ledger.find(handle.entry.number));
    // SAFETY: the driver keeps the descriptor of a live export open.
    let descriptor = found
        .flatten()
        .flatten()
        .map(|number| unsafe { BorrowedFd::borrow_raw(number) });
    let word = match (found, descriptor) {
        (None, _) => FORGED,
        (Some(None), _) => FREED,
        (Some(Some(_)), None) => LIVE,
        (Some(Some(_)), Some(_)) => LIVE_WITH_DESCRIPTOR,
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(descriptor) = &descriptor {
        control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(
            descriptor,
        )));
    }
    let word = [word];
    rustix::net::sendmsg(
        stream,
        &[IoSlice::new(&word)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Asks the process that made a handle for the memory, and whether it did make the handle.
pub fn ask(handle: &IpcHandle) -> io::Result<Said> {
    let address = address(handle.entry.token)?;
    let stream = loop {
        match UnixStream::connect_addr(&address) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            stream => break stream?,
        }
    };
    // The name is a secret of the process's, yet whoever made up the handle may have made up that, too.
    let maker = rustix::net::sockopt::socket_peercred(&stream)?.uid;
    if !is_trusted(maker.as_raw()) {
        return Ok(Said::Untrusted(maker.as_raw()));
    }
    serves(maker, rustix::process::geteuid())?;
    stream.set_read_timeout(Some(LONG_PATIENCE))?;
    stream.set_write_timeout(Some(LONG_PATIENCE))?;
    (&stream).write_all(&handle.to_bytes())?;
    let mut word = [u8::MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(
            &stream,
            &mut [IoSliceMut::new(&mut word)],
            &mut control,
            flags,
        )
    })?;
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    match (word, descriptor) {
        ([FORGED], None) => Ok(Said::Forged),
        ([FREED], None) => Ok(Said::Freed),
        ([LIVE], None) => Ok(Said::Live(None)),
        ([LIVE_WITH_DESCRIPTOR], Some(descriptor)) => Ok(Said::Live(Some(descriptor))),
        // The kernel leaves out what this process has no number for.
        ([LIVE_WITH_DESCRIPTOR], None) if received.flags.contains(ReturnFlags::CTRUNC) => {
            Err(Errno::MFILE.into())
        }
        _ => Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "it hung up without an answer",
        )),
    }
}
