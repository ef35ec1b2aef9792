//! One allocation, and what keeps it in place while it is used.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use level_zero_sys as sys;
use parking_lot::{Condvar, Mutex};

use super::backing::{Backing, Export, Record};
use super::ledger;
use crate::answer::Answer;

/// Wakes blocking frees; shared by all allocations, as they are rare.
static IDLE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// A live allocation. Its memory goes back when the last owner lets go.
#[derive(Debug)]
pub struct Allocation {
    backing: Backing,
    size: usize,
    kind: sys::ze_memory_type_t,
    id: u64,
    context: u64,
    has_device: bool,
    /// How many submitted operations use it.
    users: AtomicUsize,
    /// What other processes map it through, once it has been exported.
    export: OnceLock<Export>,
}

impl Allocation {
    /// Describes `size` bytes in `backing`, already entered in the ledger.
    pub(super) fn new(
        backing: Backing,
        size: usize,
        kind: sys::ze_memory_type_t,
        id: u64,
        context: u64,
        has_device: bool,
    ) -> Self {
        Self {
            backing,
            size,
            kind,
            id,
            context,
            has_device,
            users: AtomicUsize::new(0),
            export: OnceLock::new(),
        }
    }

    /// Address of the first byte.
    pub fn base(&self) -> usize {
        self.backing.address()
    }

    /// Size in bytes, as asked for.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Host, device or shared.
    pub fn kind(&self) -> sys::ze_memory_type_t {
        self.kind
    }

    /// A number that no other allocation of the process has or had.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The id of the context that owns it.
    pub fn context(&self) -> u64 {
        self.context
    }

    /// Whether it was allocated for the device.
    pub fn has_device(&self) -> bool {
        self.has_device
    }

    /// Whether it is another process's memory, opened here.
    pub fn is_import(&self) -> bool {
        matches!(self.backing, Backing::Import { .. })
    }

    /// Lets another process map it: its block goes into a file, and its record too.
    ///
    /// # Errors
    /// As for `Block::export`; `ZE_RESULT_ERROR_INVALID_ARGUMENT` for another process's memory.
    pub fn export(&self) -> Answer<&Export> {
        let (block, offset) = self
            .backing
            .in_block()
            .ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        if let Some(export) = self.export.get() {
            return Ok(export);
        }
        let record = Record {
            id: self.id,
            offset: offset as u64,
            size: self.size as u64,
            kind: self.kind,
        };
        let export = block.export(&record)?;
        // Of two threads that export at once, both wrote the same record; one of the descriptors is dropped.
        Ok(self.export.get_or_init(|| export))
    }

    /// Waits until no submitted operation uses it.
    pub(super) fn wait_until_unused(&self) {
        let mut guard = IDLE.0.lock();
        while self.users.load(Ordering::Acquire) > 0 {
            // The user that leaves notifies without the lock, so a wake-up can be missed: look again soon.
            IDLE.1.wait_for(&mut guard, Duration::from_millis(1));
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let Some((block, _)) = self.backing.in_block() else {
            return;
        };
        if let Some(export) = self.export.get() {
            block.strike(export);
        }
        ledger::leave(self.size);
    }
}

/// An operation's hold on an allocation: freeing takes effect only after the last one is dropped.
#[derive(Debug)]
pub struct Pin(Arc<Allocation>);

impl Pin {
    /// Takes hold.
    pub fn new(allocation: Arc<Allocation>) -> Self {
        allocation.users.fetch_add(1, Ordering::Relaxed);
        Self(allocation)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if self.0.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            IDLE.1.notify_all();
        }
    }
}
