//! One allocation, and what keeps it in place while it is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use level_zero_sys as sys;

use super::allocate::Request;
use super::backing::{Backing, Export, Record, exports};
use super::ledger;
use super::uses::Uses;
use crate::abi::result::Answer;

/// A live allocation. Its memory goes back when the last owner lets go.
#[derive(Debug)]
pub struct Allocation {
    backing: Backing,
    size: usize,
    kind: sys::ze_memory_type_t,
    id: u64,
    context: u64,
    has_device: bool,
    /// The submitted operations that use it.
    uses: Uses,
    /// Whether this process, or one that it was forked from, has exported it.
    exported: AtomicBool,
}

impl Allocation {
    /// What `request` asked for, in `backing`; new memory has been entered in the ledger.
    pub(super) fn new(backing: Backing, request: &Request, id: u64) -> Self {
        Self {
            backing,
            size: request.size,
            kind: request.kind,
            id,
            context: request.context,
            has_device: request.has_device,
            uses: Uses::default(),
            exported: AtomicBool::new(false),
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
    /// The code that goes with what the system refused, which is described; `ZE_RESULT_ERROR_INVALID_ARGUMENT` for another process's memory.
    pub fn export(&self) -> Answer<Export> {
        let (block, offset) = self
            .backing
            .in_block()
            .ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        let record = Record {
            id: self.id,
            offset: offset as u64,
            size: self.size as u64,
            kind: self.kind,
        };
        // Before it is: a thread that frees it meanwhile looks in vain, rather than not at all.
        self.exported.store(true, Ordering::Release);
        exports::export(block, &record)
    }

    /// Waits until no submitted operation uses it.
    pub fn wait_until_unused(&self) {
        self.uses.wait();
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.is_import() {
            return;
        }
        if self.exported.load(Ordering::Acquire) {
            exports::strike(self.id);
        }
        ledger::leave(self.size);
    }
}

/// An operation's hold on an allocation: freeing takes effect only after the last one is dropped.
#[derive(Debug)]
pub struct Pin {
    allocation: Arc<Allocation>,
    entered: u32,
}

impl Pin {
    /// Takes hold.
    pub fn new(allocation: Arc<Allocation>) -> Self {
        let entered = allocation.uses.enter();
        Self {
            allocation,
            entered,
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.allocation.uses.leave(self.entered);
    }
}
