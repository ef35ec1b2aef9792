//! The atomics of [`pins`](crate::pins), which `tests/models` replaces by loom's.

pub(crate) use std::sync::atomic::{AtomicU32, Ordering};
