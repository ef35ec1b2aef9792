//! How far knowledge of the memory has got.

use std::sync::atomic::{AtomicU8, Ordering};

/// Others may work on the memory by the SYCL queue.
const KNOWN: u8 = 1;
/// The interface was read, so that others may use the memory unseen.
const EXPORTED: u8 = 2;

/// Who may have learnt of the memory; it only grows.
#[derive(Debug, Default)]
pub(crate) struct Reach(AtomicU8);

impl Reach {
    /// Of memory that others have known before.
    pub(crate) fn known() -> Self {
        Self(AtomicU8::new(KNOWN))
    }

    /// Whether others may work on the memory by the SYCL queue.
    pub(crate) fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= KNOWN
    }

    /// Whether the interface was read.
    pub(crate) fn is_exported(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= EXPORTED
    }

    /// Notes that others may learn of the memory.
    pub(crate) fn make_known(&self) {
        self.grow(KNOWN);
    }

    /// Notes that the interface is read.
    pub(crate) fn export(&self) {
        self.grow(EXPORTED);
    }

    fn grow(&self, reach: u8) {
        // Looked at first, as a write is dear and hardly ever needed.
        if self.0.load(Ordering::Relaxed) < reach {
            self.0.fetch_max(reach, Ordering::Relaxed);
        }
    }
}
