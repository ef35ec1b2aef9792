//! The exporting process's socket: gives out descriptors where the system forbids taking them.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use super::ledger;

/// How long a connection may hold up the others.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a busy process may take to answer.
const LONG_PATIENCE: Duration = Duration::from_secs(60);

const FREED: u8 = 0;
const LIVE: u8 = 1;
const LIVE_WITH_DESCRIPTOR: u8 = 2;

/// What the owner says of an export.
pub enum Said {
    /// It has been freed.
    Freed,
    /// It is live; its descriptor, if the driver has one.
    Live(Option<OwnedFd>),
}

/// The name holds the process's secret, so nobody finds it who was given no handle.
fn address(token: [u8; 16]) -> io::Result<SocketAddr> {
    let token = u128::from_ne_bytes(token);
    SocketAddr::from_abstract_name(format!("zeusm-ipc-{token:032x}"))
}

/// Begins to serve, in a thread that ends with the process.
pub fn start(token: [u8; 16]) -> io::Result<()> {
    let listener = UnixListener::bind_addr(&address(token)?)?;
    thread::Builder::new()
        .name("zeusm-ipc".to_owned())
        .spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever asked sees the stream end, and says what went wrong.
                let _ = answer(&stream);
            }
        })
        .map(drop)
}

fn answer(mut stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let asker = rustix::net::sockopt::socket_peercred(stream)?.uid;
    if asker != rustix::process::geteuid() && !asker.is_root() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut number = [0; 8];
    stream.read_exact(&mut number)?;
    // Until the answer is sent the ledger stays locked, so that the descriptor cannot be closed under it.
    let ledger = ledger::get();
    let found = ledger
        .as_ref()
        .and_then(|ledger| ledger.find(u64::from_ne_bytes(number)));
    // SAFETY: the driver keeps the descriptor of a live export open.
    let descriptor = found
        .flatten()
        .map(|number| unsafe { BorrowedFd::borrow_raw(number) });
    let word = match (found, descriptor) {
        (None, _) => FREED,
        (Some(_), None) => LIVE,
        (Some(_), Some(_)) => LIVE_WITH_DESCRIPTOR,
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

/// Asks the process with this secret for an export.
pub fn ask(token: [u8; 16], number: u64) -> io::Result<Said> {
    let stream = UnixStream::connect_addr(&address(token)?)?;
    stream.set_read_timeout(Some(LONG_PATIENCE))?;
    stream.set_write_timeout(Some(LONG_PATIENCE))?;
    io::Write::write_all(&mut &stream, &number.to_ne_bytes())?;
    let mut word = [u8::MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    rustix::net::recvmsg(
        &stream,
        &mut [IoSliceMut::new(&mut word)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    match (word, descriptor) {
        ([FREED], None) => Ok(Said::Freed),
        ([LIVE], None) => Ok(Said::Live(None)),
        ([LIVE_WITH_DESCRIPTOR], Some(descriptor)) => Ok(Said::Live(Some(descriptor))),
        // It hangs up on users that it does not serve.
        _ => Err(io::ErrorKind::PermissionDenied.into()),
    }
}
