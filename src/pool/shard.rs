//! A shard: magazines with a few free blocks of each size class, for the threads that share the shard. In most cases that is
//! one thread, so the lock is rarely contended.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::sizes::{COUNT, SIZES};
use super::slab::SlabBlock;
use super::statistics::Counters;

/// The maximum number of bytes in a magazine, if that is enough for one block.
const MAGAZINE_BYTES: usize = 64 << 10;
/// The maximum number of blocks in a magazine.
const MAGAZINE_BLOCKS: usize = 64;

/// The state under a shard's lock.
#[derive(Debug, Default)]
pub(super) struct Shard {
    /// Free blocks by class.
    pub(super) magazines: [Vec<SlabBlock>; COUNT],
    pub(super) counters: Counters,
}

/// The capacity of a class's magazine in blocks.
pub(super) fn capacity(class: usize) -> usize {
    (MAGAZINE_BYTES / SIZES[class]).clamp(1, MAGAZINE_BLOCKS)
}

impl Shard {
    /// Adds a free block to its magazine. When the magazine is over its capacity, returns the older half of it.
    pub(super) fn put(&mut self, class: usize, block: SlabBlock) -> Option<Vec<SlabBlock>> {
        let magazine = &mut self.magazines[class];
        magazine.push(block);
        let capacity = capacity(class);
        // The newest blocks stay, as they are the most likely to be in the processor's cache.
        (magazine.len() > capacity).then(|| magazine.drain(..=capacity / 2).collect())
    }
}

/// This thread's number; threads are numbered in the order of their first call.
pub(super) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(0) };
    }
    let number = NUMBER.get();
    if number != 0 {
        return number;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(number);
    number
}
