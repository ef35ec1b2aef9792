//! What both ends of a socket between processes know: its name, whom it is for, and the answers.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use rustix::process::Uid;

/// A random number that names a socket, in the handles of its process.
pub type Token = [u8; 16];

/// The answers to a handle, of one byte.
pub const FREED: u8 = 0;
/// The export is live, and the driver uses no descriptor.
pub const LIVE: u8 = 1;
/// The export is live, and the descriptor comes with the answer.
pub const LIVE_WITH_DESCRIPTOR: u8 = 2;
/// The process did not make the handle, or not with this content.
pub const FORGED: u8 = 3;
/// The event is complete.
pub const COMPLETE: u8 = 4;
/// The event's operation has failed.
pub const FAILED: u8 = 5;

/// The name of a socket. It is no secret, as /proc/net/unix lists it: the server checks each client's user, and
/// the tag of each handle.
pub fn name(token: Token) -> String {
    format!("zeusm-ipc-{:032x}", u128::from_ne_bytes(token))
}

/// Whether a server of one user accepts a client of another.
pub fn check_client(server: Uid, client: Uid) -> io::Result<()> {
    if client == server || client.is_root() {
        return Ok(());
    }
    let reason = "it answers processes of its own user and of root only";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// The effective user of the process at the other end. The process id that the kernel gives with it is 0 where that process
/// is not in this PID namespace, which rustix's type of it does not permit, so it is not read.
pub fn peer_user(stream: &UnixStream) -> io::Result<Uid> {
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
