//! The small fields of a memory object, each in a byte, as there may be millions of objects.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use pyo3::prelude::*;

use crate::interpreter::FREE_THREADED;
use crate::pins::{Closed, Pins};
use zeusm::usm::UsmKind;

/// The alignment that was requested, and whether the memory is read-only.
#[derive(Clone, Copy)]
pub(crate) struct Terms(u8);

/// The other bits are the alignment as a power of two, 0 for none.
const READ_ONLY: u8 = 0x80;

impl Terms {
    /// Without an alignment.
    pub(crate) fn new(is_read_only: bool) -> Self {
        Self(if is_read_only { READ_ONLY } else { 0 })
    }

    /// The same with an alignment of 0, for none, or a power of two.
    pub(crate) fn aligned(self, alignment: usize) -> Self {
        let bits = alignment.checked_ilog2().map_or(0, |bits| bits as u8);
        Self(self.0 & READ_ONLY | bits)
    }

    pub(crate) fn is_read_only(self) -> bool {
        self.0 & READ_ONLY != 0
    }

    /// In bytes; 0 for none.
    pub(crate) fn alignment(self) -> usize {
        match self.0 & !READ_ONLY {
            0 => 0,
            bits => 1 << bits,
        }
    }
}

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

/// Counts the first buffers of an object; [`Pins`] have the rest.
///
/// The interpreter requests and releases buffers with the GIL held, and an object is closed with it held. So the count needs no
/// atomic addition, of which two take a tenth of the time of a memoryview. Without a GIL, `Pins` have all.
#[derive(Default)]
pub(crate) struct Views(AtomicU8);

impl Views {
    /// Adds a buffer.
    ///
    /// # Errors
    /// [`Closed`] when the object is closed or being closed.
    pub(crate) fn acquire(&self, _py: Python<'_>, pins: &Pins) -> Result<(), Closed> {
        let views = self.0.load(Ordering::Relaxed);
        if views == u8::MAX || FREE_THREADED {
            return pins.acquire();
        }
        pins.check_open()?;
        self.0.store(views + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Releases a buffer. Which one does not matter, as the object can be closed without any only.
    pub(crate) fn release(&self, _py: Python<'_>, pins: &Pins) {
        match self.0.load(Ordering::Relaxed) {
            0 => pins.release(),
            views => self.0.store(views - 1, Ordering::Relaxed),
        }
    }

    /// The buffers that are counted here.
    pub(crate) fn count(&self, _py: Python<'_>) -> u32 {
        self.0.load(Ordering::Relaxed).into()
    }
}
