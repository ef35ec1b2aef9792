//! Blocks: mappings that hold one large or many small allocations.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use zeusm_process::generation;

use super::exports;
use super::mapping::Mapping;
use super::reserve;
use super::share::can_move;

/// A mapping, unmapped when the block is dropped.
#[derive(Debug)]
pub struct Block {
    mapping: Mapping,
    /// The generation of the process that exported an allocation of it; 0 when none has.
    exported_in: AtomicU32,
    /// Whether it was ever moved into a memory file, in this process or one that it was forked from.
    in_file: AtomicBool,
}

impl Block {
    /// At least `length` bytes aligned to `alignment`; `None` when there are none.
    pub fn new(length: usize, alignment: usize) -> Option<Self> {
        Some(Self::of(Mapping::anonymous(length, alignment)?))
    }

    /// The same, inaccessible.
    pub fn closed(length: usize, alignment: usize) -> Option<Self> {
        let block = Self::of(reserve::take(length, alignment)?);
        if block.in_file.load(Ordering::Relaxed) {
            block.mapping.close();
        }
        Some(block)
    }

    fn of(mapping: Mapping) -> Self {
        let block = Self {
            mapping,
            exported_in: AtomicU32::new(0),
            in_file: AtomicBool::new(false),
        };
        if can_move().is_err() {
            exports::share_when_new(&block);
        }
        block
    }

    /// Excludes it from further suballocation.
    pub(super) fn close(&self) {
        self.exported_in.store(generation(), Ordering::Release);
    }

    /// Whether it is excluded from suballocation: processes that an allocation of the block was exported to can see all
    /// of the block. The copy in a fork's child is private again.
    pub fn is_closed(&self) -> bool {
        self.exported_in.load(Ordering::Acquire) == generation()
    }

    /// Notes that it was moved into a memory file.
    pub(super) fn set_in_file(&self) {
        self.in_file.store(true, Ordering::Release);
    }

    /// Its addresses.
    pub(super) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        self.mapping.address()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if *self.in_file.get_mut() {
            exports::unregister(self.mapping.address());
        }
    }
}
