//! Whether users outside of zeusm can reach the memory.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use zeusm::usm::UsmKind;

/// The address was exported, so that the SYCL queue may have work on the memory.
const SHARED: u8 = 1;
/// `__sycl_usm_array_interface__` was read, so that other packages may use the memory without zeusm's knowledge.
const EXPORTED: u8 = 2;

/// Whether USM was imported by an address that a memoryview or a NumPy array may have told: the object that allocated it does
/// not know of the import, and may be any.
static IMPORTED_BY_ADDRESS: AtomicBool = AtomicBool::new(false);

/// Notes an import by an address, rather than of an object that zeusm knows to share its memory. From now on, all memory counts
/// as shared.
pub(crate) fn note_import_by_address(kind: UsmKind) {
    if kind.is_host_accessible() {
        IMPORTED_BY_ADDRESS.store(true, Ordering::Relaxed);
    }
}

/// Whether the memory was exported, and how. The state is never reset.
#[derive(Debug, Default)]
pub(crate) struct ExportState(AtomicU8);

impl ExportState {
    /// The state of memory that may have other users already.
    pub(crate) fn shared() -> Self {
        Self(AtomicU8::new(SHARED))
    }

    /// Whether the SYCL queue may have work on the memory.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= SHARED || IMPORTED_BY_ADDRESS.load(Ordering::Relaxed)
    }

    /// Whether the interface was read.
    pub(crate) fn is_exported(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= EXPORTED
    }

    /// Records that the address was exported.
    pub(crate) fn mark_shared(&self) {
        self.raise(SHARED);
    }

    /// Records that the interface was read.
    pub(crate) fn mark_exported(&self) {
        self.raise(EXPORTED);
    }

    fn raise(&self, state: u8) {
        // The value is read first, as a write costs more and is rarely needed.
        if self.0.load(Ordering::Relaxed) < state {
            self.0.fetch_max(state, Ordering::Relaxed);
        }
    }
}
