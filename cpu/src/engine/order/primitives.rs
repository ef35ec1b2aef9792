//! The synchronization primitives of the engine. The models in `tests/models` replace them by loom's.

pub use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub use std::thread;

pub use crate::system::stack::THREAD as THREAD_STACK;
pub use zeusm_process::{Condvar, Mutex};

/// How often a waiting thread spins before it sleeps: a few microseconds.
pub const SPIN_LIMIT: u32 = 300;
