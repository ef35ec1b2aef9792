//! Numbers of threads.

use std::ptr;

thread_local! {
    static OWN: u8 = const { 0 };
}

/// A number that no other thread has while this one lives, and that the thread of a fork's child shares with the thread that
/// forked; never 0. It may be asked for while the thread ends.
#[must_use]
pub fn this_thread() -> usize {
    OWN.with(|own| ptr::from_ref(own).addr())
}
