//! A block of memory that allocations are cut from, or that is one.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::exports;
use super::mapping::Mapping;
use super::share::can_move;
use crate::process;

/// Bytes that are mapped, freed when the block is dropped.
#[derive(Debug)]
pub struct Block {
    mapping: Mapping,
    /// The generation of the process that exported something of it; 0 when none has.
    exported_in: AtomicU32,
    /// Whether it has been in a file, in this process or one that this was forked from.
    in_file: AtomicBool,
}

impl Block {
    /// At least `length` bytes aligned to `alignment`; `None` when there are none.
    pub fn new(length: usize, alignment: usize) -> Option<Self> {
        let block = Self {
            mapping: Mapping::anonymous(length, alignment)?,
            exported_in: AtomicU32::new(0),
            in_file: AtomicBool::new(false),
        };
        if can_move().is_err() {
            exports::share_from_the_beginning(&block);
        }
        Some(block)
    }

    /// Lets nothing new be cut from it.
    pub(super) fn close(&self) {
        self.exported_in
            .store(process::generation(), Ordering::Release);
    }

    /// Whether nothing new may be cut from it: it would be seen by all processes that something of the block was exported
    /// to. The copy of a child is its own.
    pub fn is_closed(&self) -> bool {
        self.exported_in.load(Ordering::Acquire) == process::generation()
    }

    /// Tells that it is in a file.
    pub(super) fn note_file(&self) {
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
            exports::forget(self.mapping.address());
        }
    }
}
