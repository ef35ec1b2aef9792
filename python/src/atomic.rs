//! The atomics of [`pins`](crate::pins), which `tests/models` replaces with loom's.

pub(crate) use std::sync::atomic::{AtomicU32, Ordering};
