//! Allocations, and the pins that keep one alive while commands use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use level_zero_sys as sys;

use super::accounting;
use super::allocate::Request;
use super::backing::{Backing, Export, Record, exports};
use super::indirect::{self, Indirect};
use super::pins::PinCount;
use super::share::Share;
use crate::abi::result::ZeResult;
use crate::check::Watch;

/// An allocation. Its memory is freed with the last reference.
#[derive(Debug)]
pub struct Allocation {
    backing: Backing,
    size: usize,
    kind: sys::ze_memory_type_t,
    id: u64,
    context: u64,
    device: u64,
    share: Option<&'static Share>,
    /// The submitted commands that use it.
    pins: PinCount,
    /// Whether this process, or one that it was forked from, has exported it.
    exported: AtomicBool,
    /// Whether its file holds no other allocation.
    alone: bool,
}

impl Allocation {
    /// The allocation that `request` describes, in `backing`. The caller has accounted for new memory.
    pub(super) fn new(backing: Backing, request: &Request, id: u64) -> Self {
        Self {
            backing,
            size: request.size,
            kind: request.kind,
            id,
            context: request.context,
            device: request.device,
            share: request.share,
            pins: PinCount::default(),
            exported: AtomicBool::new(false),
            alone: request.alone,
        }
    }

    /// Whether its file, if it is exported, holds no other allocation and begins with it.
    pub fn is_alone(&self) -> bool {
        self.alone
    }

    /// Address of the first byte.
    pub fn base(&self) -> usize {
        self.backing.address()
    }

    /// Size in bytes, as asked for.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The page size that its properties report. SYCL's pools ask for that of one allocation, and take every allocation to begin
    /// at a multiple of it.
    pub fn page_size(&self) -> usize {
        self.backing.granularity()
    }

    /// Host, device or shared.
    pub fn kind(&self) -> sys::ze_memory_type_t {
        self.kind
    }

    /// An id that is unique among the process's past and present allocations.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The id of the context that owns it.
    pub fn context(&self) -> u64 {
        self.context
    }

    /// The handle of the device that it was allocated for, or 0.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// The checker's side of it, when the checker is on.
    pub fn watched(&self) -> Option<&Arc<Watch>> {
        self.backing.watched()
    }

    /// Whether it was imported from another process.
    pub fn is_import(&self) -> bool {
        matches!(self.backing, Backing::Import { .. })
    }

    /// Whether it is memory of this process, rather than of another one or of a file of the program's.
    pub fn is_own(&self) -> bool {
        self.backing.in_block().is_some()
    }

    /// Exports it: moves its block into a memory file, with a record that describes it.
    ///
    /// # Errors
    /// The result code for the system's error, which is described; `ZE_RESULT_ERROR_INVALID_ARGUMENT` for memory of
    /// another process or file.
    pub fn export(&self) -> ZeResult<Export> {
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
        // Set before the export, so that a concurrent free looks for an export.
        self.exported.store(true, Ordering::Release);
        if let Some(watch) = self.watched() {
            watch.release();
        }
        exports::export(block, &record)
    }

    /// Waits until no submitted command uses it, nor may use it.
    pub fn wait_until_unused(&self) {
        self.pins.wait_until_zero();
        indirect::wait();
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.backing.in_block().is_none() {
            return;
        }
        if self.exported.load(Ordering::Acquire) {
            exports::revoke(self.id);
        }
        accounting::release(self.size, self.share);
    }
}

/// Keeps an allocation alive for a command: a free takes effect when the last pin is dropped.
#[derive(Debug)]
pub struct AllocationPin {
    allocation: Arc<Allocation>,
    generation: u32,
}

impl Drop for AllocationPin {
    fn drop(&mut self) {
        self.allocation.pins.unpin(self.generation);
        if let Some(watch) = self.allocation.watched() {
            watch.unpin();
        }
    }
}

/// A command's use of memory, from its submission to its completion.
#[derive(Debug)]
pub enum Pin {
    /// That of an allocation.
    Allocation(AllocationPin),
    /// That of any allocation, which keeps none alive: a blocking free waits for it.
    Any(Indirect),
}

impl Pin {
    /// The allocation, if it is of one.
    pub fn allocation(&self) -> Option<&Allocation> {
        match self {
            Self::Allocation(pin) => Some(&pin.allocation),
            Self::Any(_) => None,
        }
    }

    /// Pins `allocation`.
    pub fn new(allocation: Arc<Allocation>) -> Self {
        let generation = allocation.pins.pin();
        if let Some(watch) = allocation.watched() {
            watch.pin();
        }
        Self::Allocation(AllocationPin {
            allocation,
            generation,
        })
    }

    /// For a kernel that follows pointers in memory.
    pub fn any() -> Self {
        Self::Any(Indirect::begin())
    }
}
