//! The fast path: a few free blocks of each class for the threads that share a shard, which are hardly ever two.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::sizes::{COUNT, SIZES};
use super::slab::Piece;
use super::statistics::Counters;

/// The most bytes of blocks of a class that a shard keeps, where one block does not exceed that.
const KEPT_BYTES: usize = 64 << 10;
/// The most blocks of a class that a shard keeps.
const MOST: usize = 64;

/// What a shard's lock protects.
#[derive(Debug, Default)]
pub(super) struct Shard {
    /// Free blocks by class.
    pub(super) magazines: [Vec<Piece>; COUNT],
    pub(super) counters: Counters,
}

/// How many free blocks of a class a shard keeps.
pub(super) fn capacity(class: usize) -> usize {
    (KEPT_BYTES / SIZES[class]).clamp(1, MOST)
}

impl Shard {
    /// Keeps a free block. When that is one too many, gives half of them up.
    pub(super) fn keep(&mut self, class: usize, piece: Piece) -> Option<Vec<Piece>> {
        let magazine = &mut self.magazines[class];
        magazine.push(piece);
        let capacity = capacity(class);
        // The older half: the newest blocks are the ones still in the processor's cache.
        (magazine.len() > capacity).then(|| magazine.drain(..=capacity / 2).collect())
    }
}

/// This thread's number: threads are numbered as they come.
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
