//! The atomics of the modules that `tests/models` checks with those of loom.

pub use std::sync::atomic::*;
