//! The synchronization primitives of the engine, which are loom's in models.

#[cfg(not(loom))]
pub use std::thread;
#[cfg(loom)]
pub use zeusm_process::tests::loom::thread;

pub use crate::system::stack::THREAD as THREAD_STACK;
pub use zeusm_process::atomic::{AtomicBool, AtomicUsize, Ordering};
pub use zeusm_process::{Condvar, Mutex};

/// How often a waiting thread spins before it sleeps: a few microseconds.
pub const SPIN_LIMIT: u32 = if cfg!(loom) { 1 } else { 300 };
