//! Allocations, and the pins that keep one alive while commands use it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use level_zero_sys as sys;

use super::backing::{Backing, Export, Form, Record};
use super::indirect::{self, Indirect};
use super::pins::PinCount;
use super::share::{Reserved, Share};
use crate::abi::result::ZeResult;
use crate::check::{self, Watch};

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

/// An allocation. Its memory is freed with the last reference.
pub struct Allocation {
    backing: Backing,
    /// An id that is unique among the process's past and present allocations.
    pub id: u64,
    /// What it was asked for with.
    pub request: Request,
    /// The submitted commands that use it.
    pins: PinCount,
    /// The bytes that it takes; none of memory of another process or file.
    _reserved: Option<Reserved>,
}

impl Allocation {
    /// The allocation that `request` describes, in `backing`, with the bytes that were granted for new memory.
    pub(super) fn new(
        backing: Backing,
        reserved: Option<Reserved>,
        request: &Request,
        id: u64,
    ) -> Self {
        Self {
            backing,
            id,
            request: *request,
            pins: PinCount::default(),
            _reserved: reserved,
        }
    }

    /// Address of the first byte.
    pub fn base(&self) -> usize {
        self.backing.address()
    }

    /// Its bytes.
    pub fn bytes(&self) -> Range<usize> {
        self.base()..self.base() + self.request.size
    }

    /// The page size that its properties report. SYCL's pools ask for that of one allocation, and take every allocation to begin
    /// at a multiple of it.
    pub fn page_size(&self) -> usize {
        self.backing.granularity()
    }

    /// The checker's side of it, when the checker is on.
    pub fn watched(&self) -> Option<&Arc<Watch>> {
        self.backing.watched()
    }

    /// Whether it was imported from another process.
    pub fn is_import(&self) -> bool {
        self.backing.form() == Form::Import
    }

    /// Whether it is memory of this process, rather than of another one or of a file of the program's.
    pub fn is_own(&self) -> bool {
        matches!(self.backing.form(), Form::Own | Form::Guarded)
    }

    /// Whether it is in pages of the program.
    pub fn is_of_program(&self) -> bool {
        self.backing.form() == Form::Program
    }

    /// Exports it: moves its pages into a memory file of their own.
    ///
    /// # Errors
    /// The result code for the system's error, which is described; `ZE_RESULT_ERROR_INVALID_ARGUMENT` for memory of
    /// another process or file.
    pub fn export(&self) -> ZeResult<Export> {
        let record = |offset: usize| Record {
            id: self.id,
            offset: offset as u64,
            size: self.request.size as u64,
            kind: self.request.kind,
        };
        self.backing.export(record)
    }

    /// Waits until no submitted command uses it, nor may use it.
    pub fn wait_until_unused(&self) {
        self.pins.wait_until_zero();
        indirect::wait();
    }
}

/// Keeps an allocation alive for a command: a free takes effect when the last pin is dropped.
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
            check::pin(watch);
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
