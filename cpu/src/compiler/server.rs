//! The compiler process: receives jobs on standard input, a socket, and returns outcomes on it.

use std::io::{self, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::execute::execute;
use super::limit::read_limit;
use super::message::Task;
use super::protocol::{receive, send};

/// The default limit of processor time for a module in seconds. Those of ggml need one for each KiB on a busy machine.
fn seconds(task: &Task) -> u32 {
    60 + u32::try_from(size(task) >> 8).unwrap_or(u32::MAX / 2)
}

/// How much there is to compile, in bytes.
fn size(task: &Task) -> usize {
    match task {
        Task::Build(job) => job.iter().map(|unit| unit.code.len()).sum(),
        Task::Translate(source, _) => source.len(),
    }
}

/// Sent when a job was received: from then on, a crash is caused by the job.
pub const STARTED: u8 = 0x5a;

/// Serves until the client closes the socket.
pub fn serve() -> io::Result<()> {
    // A core file of a crashed compiler is of no use to the user.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut from = BufReader::new(stream.try_clone()?);
    let mut to = stream;
    let limit = read_limit().unwrap_or_default();
    while let Ok(task) = receive(&mut from) {
        to.write_all(&[STARTED])?;
        limit_time(limit.unwrap_or_else(|| seconds(&task)));
        let outcome = execute(&task);
        limit_time(0);
        send(&mut to, &outcome)?;
    }
    Ok(())
}

/// Has the system kill this process after `limit` seconds of processor time, or ten times that in real time; 0 is no
/// limit. This also ends a build that hangs after the client has exited.
fn limit_time(limit: u32) {
    let limit = libc::time_t::from(limit);
    for (timer, seconds) in [(libc::ITIMER_PROF, limit), (libc::ITIMER_REAL, limit * 10)] {
        let [never, end] = [0, seconds].map(|tv_sec| libc::timeval { tv_sec, tv_usec: 0 });
        let value = libc::itimerval {
            it_interval: never,
            it_value: end,
        };
        // SAFETY: the value is valid, and the old one is not requested.
        unsafe { libc::setitimer(timer, &raw const value, std::ptr::null_mut()) };
    }
}
