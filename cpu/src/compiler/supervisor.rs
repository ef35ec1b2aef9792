//! What the started process does before it builds modules, while it has one thread and no OpenCL.
//!
//! The compiler is no child of the program, whose loop of `wait` would not end before the compiler, or would take its
//! exit status. So the process that the program starts forks and ends at once. Its child, the supervisor, forks the
//! compiler, and appends the compiler's exit status to the output. It has the socket open until then: when the client
//! finds the end of the socket, the status is there.

use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::libc::{self, c_int, c_uint, pid_t};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
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
    // SAFETY: has no preconditions, as all of these.
    let program = unsafe { libc::getppid() };
    if fork()? != 0 {
        end(0);
    }
    // SAFETY: as before.
    let supervisor = unsafe { libc::getpid() };
    match fork() {
        Ok(0) => follow(supervisor),
        Ok(compiler) => supervise(program, compiler),
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
    // SAFETY: nothing in this process uses a descriptor yet, except for the standard streams.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, FIRST_DESCRIPTOR, c_uint::MAX, 0) };
    if closed == 0 {
        return;
    }
    let Ok(open) = fs::read_dir("/proc/self/fd") else {
        return;
    };
    // The folder's own descriptor is closed before.
    let names: Vec<_> = open.flatten().map(|entry| entry.file_name()).collect();
    let numbers = names.iter().filter_map(|name| name.to_str()?.parse().ok());
    for number in numbers.filter(|number: &c_int| *number >= FIRST_DESCRIPTOR) {
        // SAFETY: as before.
        unsafe { libc::close(number) };
    }
}

fn fork() -> io::Result<pid_t> {
    // SAFETY: this process has one thread.
    let process = unsafe { libc::fork() };
    if process < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(process)
    }
}

fn end(code: c_int) -> ! {
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(code) }
}

/// In the compiler: has it end with its supervisor.
fn follow(supervisor: pid_t) {
    // SAFETY: changes a property of this process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // SAFETY: has no preconditions.
    if unsafe { libc::getppid() } != supervisor {
        end(1);
    }
}

/// In the supervisor: waits for the compiler's end, or the program's, and reports the status.
fn supervise(program: pid_t, compiler: pid_t) -> ! {
    if is_first_to_end(program, compiler) {
        // SAFETY: a child that has not been waited for, so the number is its own.
        unsafe { libc::kill(compiler, libc::SIGKILL) };
    }
    let mut status = 0;
    // SAFETY: the place is ours.
    while unsafe { libc::waitpid(compiler, &raw mut status, 0) } < 0 && is_interrupted() {}
    let mut report = MARK.to_vec();
    report.extend(status.to_le_bytes());
    let _ = io::stderr().write_all(&report);
    // A child that the program forked while it started this process may have this end of the socket, too.
    // SAFETY: has no preconditions.
    unsafe { libc::shutdown(libc::STDIN_FILENO, libc::SHUT_RDWR) };
    end(0)
}

/// Waits for the end of either of two processes. False, at once, where a filter of system calls forbids it; the
/// compiler then ends when the last copy of the program's socket is closed, which the child of a fork may have, too.
fn is_first_to_end(program: pid_t, other: pid_t) -> bool {
    let open = |process| pidfd_open(Pid::from_raw(process)?, PidfdFlags::empty()).ok();
    let (Some(program), Some(other)) = (open(program), open(other)) else {
        return false;
    };
    let mut polled = [&program, &other].map(|process| libc::pollfd {
        fd: process.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: the array has two elements.
    while unsafe { libc::poll(polled.as_mut_ptr(), 2, -1) } < 0 && is_interrupted() {}
    polled[0].revents != 0
}

fn is_interrupted() -> bool {
    io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
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
