//! Which forks have a child that uses the runtime.
//!
//! By default each one may. A program that knows which of its forks only start another program, as an interpreter with hooks
//! before its own forks does, announces the others: then the rest of its forks do not wait for kernels in flight.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the process announces its forks.
static ARE_ANNOUNCED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread has announced its next fork.
    static IS_ANNOUNCED: Cell<bool> = const { Cell::new(false) };
}

/// From now on, each fork of this process and its children needs an announcement.
pub fn require() {
    ARE_ANNOUNCED.store(true, Ordering::Relaxed);
}

/// Announces the next fork of this thread.
pub fn announce() {
    IS_ANNOUNCED.set(true);
}

/// Whether the child of the fork that this thread begins may use the runtime.
pub fn take() -> bool {
    IS_ANNOUNCED.take() || !ARE_ANNOUNCED.load(Ordering::Relaxed)
}
