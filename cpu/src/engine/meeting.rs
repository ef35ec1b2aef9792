//! What threads of the engine meet at. The models in `tests/models`, which try every interleaving of a few threads, have
//! other types in their place.

pub use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub use std::thread;

pub use crate::process::sync::{Condvar, Mutex};

/// How often a waiting thread looks before it goes to sleep: a few microseconds.
pub const SPINS: u32 = 300;
