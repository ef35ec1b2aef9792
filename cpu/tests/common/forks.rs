//! Children of forks.
#![allow(dead_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

/// A child that takes longer hangs. In seconds.
pub const CHILD_TIMEOUT: u32 = 300;

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
