//! Whether this is another process than the one a pool was made in.
//!
//! A fork copies a pool in whatever state other threads had it, locks included, and a driver's memory does not follow.
//! So a pool serves its own process only: in a child its blocks are forgotten rather than freed, and what is allocated
//! through it there comes from the provider directly.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between the process that asked first and this one.
pub(super) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Has forks counted from now on.
pub(super) fn watch() {
    static WATCH: Once = Once::new();
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    WATCH.call_once(|| {
        // Without memory for the handler the process has other worries than forks.
        // SAFETY: the handler does what a child of a process with threads may do: it adds to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
