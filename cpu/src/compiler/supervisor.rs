//! What the started process does before it builds modules, while it has one thread and no OpenCL.
//!
//! The compiler is no child of the program, whose loop of `wait` would not end before the compiler, or would take its
//! exit status. So the process that the program starts forks and ends at once. Its child, the supervisor, forks the
//! compiler, and appends the compiler's exit status to the output. It has the socket open until then: when the client
//! finds the end of the socket, the status is there.

use std::fs;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use libc::c_int;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, kill_process, pidfd_open,
    set_parent_process_death_signal, waitpid,
};
use rustix::stdio::stdin;
use zeusm_process::FIRST_DESCRIPTOR;

/// Precedes the exit status at the end of the output.
const MARK: [u8; 4] = *b"\0end";

/// Returns in the compiler only, without the descriptors that the program's child inherited.
///
/// # Errors
/// That of the first `fork`.
pub fn enter() -> io::Result<()> {
    close_inherited();
    for signal in [libc::SIGCHLD, libc::SIGPROF, libc::SIGALRM] {
        // The program may ignore it, which is inherited: a status would be lost, or a time limit have no effect.
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let program = getppid();
    if fork()?.is_some() {
        end(0);
    }
    let supervisor = getpid();
    match fork() {
        Ok(None) => follow(supervisor),
        Ok(Some(compiler)) => supervise(program, compiler),
        Err(_) => end(1),
    }
    Ok(())
}

/// The exit status of the compiler and the output before it, if the supervisor has written one.
pub fn split_status(output: &[u8]) -> (&[u8], Option<ExitStatus>) {
    let Some((rest, status)) = output.split_last_chunk() else {
        return (output, None);
    };
    let status = ExitStatus::from_raw(c_int::from_le_bytes(*status));
    rest.strip_suffix(&MARK)
        .map_or((output, None), |text| (text, Some(status)))
}

/// Closes all descriptors but the standard streams: the other end of a pipe, say, waits for the last one to be closed.
fn close_inherited() {
    let Ok(open) = fs::read_dir("/proc/self/fd") else {
        return;
    };
    // The folder's own descriptor is closed before.
    let names: Vec<_> = open.flatten().map(|entry| entry.file_name()).collect();
    let numbers = names.iter().filter_map(|name| name.to_str()?.parse().ok());
    for number in numbers.filter(|number: &c_int| *number >= FIRST_DESCRIPTOR) {
        // SAFETY: nothing in this process uses a descriptor yet, except for the standard streams.
        unsafe { libc::close(number) };
    }
}

/// The child's id; `None` in the child.
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        ..0 => Err(io::Error::last_os_error()),
        process => Ok(Pid::from_raw(process)),
    }
}

fn end(code: c_int) -> ! {
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(code) }
}

/// In the compiler: has it end with its supervisor.
fn follow(supervisor: Pid) {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid() != Some(supervisor) {
        end(1);
    }
}

/// In the supervisor: waits for the compiler's end, or the program's, and reports the status.
fn supervise(program: Option<Pid>, compiler: Pid) -> ! {
    if is_first_to_end(program, compiler) {
        let _ = kill_process(compiler, Signal::KILL);
    }
    let ended = retry_on_intr(|| waitpid(Some(compiler), WaitOptions::empty()));
    let status = ended
        .ok()
        .flatten()
        .map_or(0, |(_, status)| status.as_raw());
    let mut report = MARK.to_vec();
    report.extend(status.to_le_bytes());
    let _ = io::stderr().write_all(&report);
    // A child that the program forked while it started this process may have this end of the socket, too.
    let _ = shutdown(stdin(), Shutdown::Both);
    end(0)
}

/// Waits for the end of either of two processes. False, at once, where a filter of system calls forbids it; the
/// compiler then ends when the last copy of the program's socket is closed, which the child of a fork may have, too.
fn is_first_to_end(program: Option<Pid>, other: Pid) -> bool {
    let open = |process| pidfd_open(process, PidfdFlags::empty()).ok();
    let (Some(program), Some(other)) = (program.and_then(open), open(other)) else {
        return false;
    };
    let socket = stdin();
    let mut polled = [
        PollFd::new(&program, PollFlags::IN),
        PollFd::new(&socket, PollFlags::empty()),
        PollFd::new(&other, PollFlags::IN),
    ];
    let _ = retry_on_intr(|| poll(&mut polled, None));
    !polled[0].revents().is_empty() || !polled[1].revents().is_empty()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_status_follows_the_output() {
        let mut output = b"text".to_vec();
        assert_eq!(split_status(&output), (&b"text"[..], None));
        assert_eq!(split_status(b""), (&b""[..], None));
        output.extend(MARK);
        output.extend(libc::SIGPROF.to_le_bytes());
        let (text, status) = split_status(&output);
        assert_eq!(text, b"text");
        assert_eq!(status.unwrap().signal(), Some(libc::SIGPROF));
    }
}
