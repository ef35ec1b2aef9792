//! State that belongs to one process: a fork's child does not use its parent's state, and initialises its own.
//!
//! A child has a copy of its parent's memory, and only the thread that forked. Locks that other threads held stay locked,
//! their work does not complete, and a driver's handles may be valid in the parent only. A [`Local`] therefore returns only
//! a value of the current process, and is empty in a new child. An [`Owned`] can be read in children, and records which
//! process made it. Inherited values of both are leaked in the child, with their locks, threads and handles.

mod exit;
#[cfg(target_os = "linux")]
mod fork;
#[cfg(not(target_os = "linux"))]
#[path = "no_fork.rs"]
mod fork;
mod local;
mod lock;
mod registry;
mod spin;

/// The atomics of the modules that `tests/models` checks with those of loom.
pub(crate) use std::sync::atomic;
use std::sync::atomic::{AtomicU32, Ordering};

pub use exit::{Section, wait_at_exit};
pub(crate) use fork::{at_fork, held_at_fork};
pub use local::{Local, Owned};
pub(crate) use lock::RwLock;
#[cfg(target_os = "linux")]
pub(crate) use lock::RwLockWriteGuard;
pub use lock::{Condvar, Mutex, MutexGuard};
pub(crate) use registry::Registry;
pub(crate) use spin::{SpinGuard, SpinLock};

/// The number of forks between the process that loaded this library and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// This process's generation, which differs from that of its parent and of its children.
fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// The generation in which the driver works, or any.
static DRIVER_GENERATION: AtomicU32 = AtomicU32::new(ANY);
const ANY: u32 = u32::MAX;

/// Confines the driver to this process. Level Zero's drivers do not work in a fork's child, which shares their files and
/// queues with its parent; zeusm's CPU runtime does.
pub(crate) fn confine_driver() {
    DRIVER_GENERATION.store(generation(), Ordering::Relaxed);
}

/// Whether this process may call the driver.
pub(crate) fn has_driver() -> bool {
    let allowed = DRIVER_GENERATION.load(Ordering::Relaxed);
    allowed == ANY || allowed == generation()
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
#[cfg(all(test, target_os = "linux"))]
pub(crate) use tests::in_child;
