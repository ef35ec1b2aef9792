//! Whether users outside of zeusm can reach the memory.

use std::sync::atomic::{AtomicU8, Ordering};

/// The address was given out, so that work on the memory may be submitted to the SYCL queue.
const SHARED: u8 = 1;
/// `__sycl_usm_array_interface__` was read, so that other packages may hold the memory without zeusm's knowledge.
const EXPORTED: u8 = 2;

/// How far the memory has been made available outside of zeusm; it never goes back.
#[derive(Debug, Default)]
pub(crate) struct ExportState(AtomicU8);

impl ExportState {
    /// Of memory that had users before.
    pub(crate) fn shared() -> Self {
        Self(AtomicU8::new(SHARED))
    }

    /// Whether work on the memory may be submitted to the SYCL queue.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= SHARED
    }

    /// Whether the interface was read.
    pub(crate) fn is_exported(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= EXPORTED
    }

    /// The address is given out.
    pub(crate) fn mark_shared(&self) {
        self.raise(SHARED);
    }

    /// The interface is read.
    pub(crate) fn mark_exported(&self) {
        self.raise(EXPORTED);
    }

    fn raise(&self, state: u8) {
        // Read first: a write costs more and is hardly ever needed.
        if self.0.load(Ordering::Relaxed) < state {
            self.0.fetch_max(state, Ordering::Relaxed);
        }
    }
}
