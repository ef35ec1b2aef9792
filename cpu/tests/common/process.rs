//! Tests in processes of their own, and children of forks.
#![allow(dead_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A process that takes longer hangs.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(900);
/// A child that takes longer hangs. In seconds.
pub const CHILD_TIMEOUT: u32 = 300;

/// Runs one ignored test of this program in a process of its own. It must pass.
pub fn alone(test: &str) {
    alone_with(test, &[]);
}

/// As [`alone`], with environment variables; returns its standard output.
pub fn alone_with(test: &str, environment: &[(&str, &str)]) -> String {
    let output = run(test, environment);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let passed = output.status.success() && text.contains("1 passed");
    assert!(passed, "{}\n{text}\n{errors}", output.status);
    eprint!("{errors}");
    text
}

/// Runs one ignored test of this program in a process of its own, which may exit early.
pub fn run(test: &str, environment: &[(&str, &str)]) -> Output {
    // `zeInit` sets variables, which another test's thread must not do while a process gets them.
    crate::common::library();
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            test,
            "--ignored",
            "--test-threads=1",
            "--nocapture",
        ])
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    receiver
        .recv_timeout(PROCESS_TIMEOUT)
        .unwrap_or_else(|_| {
            unsafe { libc::kill(id.cast_signed(), libc::SIGKILL) };
            panic!("{test} hangs")
        })
        .unwrap()
}

/// Forks, and runs `work` in the child, where it must return true.
pub fn in_child(work: impl FnOnce() -> bool) {
    let child = unsafe { libc::fork() };
    if child == 0 {
        // If this process ends before `join` does.
        unsafe { libc::alarm(CHILD_TIMEOUT) };
        let worked = catch_unwind(AssertUnwindSafe(work));
        unsafe { libc::_exit(i32::from(!worked.unwrap_or(false))) };
    }
    assert!(child > 0);
    join(child);
}

/// Waits for a child, which must exit with 0. It may hang in the handlers of the fork, before its alarm is set.
pub fn join(child: libc::pid_t) {
    let deadline = Instant::now() + Duration::from_secs(CHILD_TIMEOUT.into());
    let mut status = 1;
    loop {
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if ended != 0 {
            assert_eq!(ended, child);
            break;
        }
        if Instant::now() > deadline {
            unsafe { libc::kill(child, libc::SIGABRT) };
            panic!("a child hangs");
        }
        thread::sleep(Duration::from_micros(200));
    }
    assert_eq!(status, 0, "a child failed");
}
