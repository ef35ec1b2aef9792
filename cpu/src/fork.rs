//! Forks: a child has the memory of its parent but only the thread that forked.
//!
//! Allocations come along. Workers do not, so the child starts its own when it needs some; what its parent had under way
//! stays with the parent. As the specification demands, the child initialises the driver anew.

use std::sync::Once;

use crate::{engine, machine, usm};

/// Sees to it that a child of this process works.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Found out now, lest a fork come while another thread is about it, and the child wait for that thread.
        machine::memory::total();
        engine::processors();
        // SAFETY: the handlers only take and release a lock, which no caller of fork holds, and store to an atomic.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

extern "C" fn before() {
    usm::hold();
}

extern "C" fn in_parent() {
    usm::release();
}

extern "C" fn in_child() {
    usm::release();
    engine::forget();
}
