//! Numbers of threads, and what they execute.

use std::ptr;
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::time::{ClockId, clock_gettime};

thread_local! {
    static OWN: u8 = const { 0 };
}

/// A number that no other thread has while this one lives, and that the thread of a fork's child shares with the thread that
/// forked; never 0. It may be asked for while the thread ends.
#[must_use]
pub fn this_thread() -> usize {
    OWN.with(|own| ptr::from_ref(own).addr())
}

/// For how long the threads of this process have executed, all together.
#[cfg(target_os = "linux")]
#[must_use]
pub fn executed() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanoseconds) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}
