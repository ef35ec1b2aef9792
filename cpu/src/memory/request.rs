//! What an allocation is asked for with, and ids.

use std::sync::atomic::{AtomicU64, Ordering};

use level_zero_sys as sys;

use super::share::Share;

/// The properties of a new allocation.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Size in bytes, not 0.
    pub size: usize,
    /// A power of two up to [`MAX_ALIGNMENT`](super::MAX_ALIGNMENT), or 0 for the least.
    pub alignment: usize,
    /// Host, device or shared.
    pub kind: sys::ze_memory_type_t,
    /// The id of the context that owns it.
    pub context: u64,
    /// Whether the host can access it on a GPU with memory of its own; this only counts for the checker.
    pub host_access: bool,
    /// The handle of the device that it is allocated for, or 0. This module does not use it.
    pub device: u64,
    /// The share of the machine's memory that it is taken from.
    pub share: Option<&'static Share>,
    /// Whether it may be exported as a file descriptor, which then shows it from its beginning, also under the checker.
    pub exportable: bool,
}

/// An id that is unique among the process's past and present allocations.
pub fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
