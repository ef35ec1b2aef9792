//! What the tests of several crates share.

/// Runs `check` in a fork's child, which must not panic nor take ten seconds.
pub fn in_child(check: impl FnOnce()) {
    // SAFETY: the child makes no use of other threads, and ends without unwinding.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: the alarm's signal ends a child that hangs.
            unsafe { libc::alarm(10) };
            let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_ok();
            // SAFETY: the exit runs no handlers of the parent.
            unsafe { libc::_exit(i32::from(!passed)) };
        }
        child => {
            let mut status = 0;
            // SAFETY: the child is this process's.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
}
