//! Which forks have a child that uses the runtime.
//!
//! By default each one may. A program that knows which of its forks only start another program, as an interpreter with hooks
//! before its own forks does, announces the others: then the rest of its forks do not wait for kernels in flight.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::result::ZeResult;
use crate::driver::Driver;

/// Whether the process announces its forks.
static ARE_ANNOUNCED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread has announced its next fork.
    static IS_ANNOUNCED: Cell<bool> = const { Cell::new(false) };
}

/// `zeusmDriverRequireForkAnnouncements`: from now on, a fork of this process or its children waits for kernels in flight only if its
/// thread has announced it. The child of a fork that is not announced is expected to start another program.
pub fn require(_: Driver) -> ZeResult {
    ARE_ANNOUNCED.store(true, Ordering::Relaxed);
    Ok(())
}

/// `zeusmDriverAnnounceFork`: announces the next fork of this thread, whose child may use the runtime.
pub fn announce(_: Driver) -> ZeResult {
    IS_ANNOUNCED.set(true);
    Ok(())
}

/// Whether the child of the fork that this thread begins may use the runtime.
pub fn take() -> bool {
    IS_ANNOUNCED.take() || !ARE_ANNOUNCED.load(Ordering::Relaxed)
}
