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

/// The number of larger blocks, of all classes whose magazines would hold one.
const LARGE_BLOCKS: usize = 4;

/// The state under a shard's lock.
#[derive(Debug)]
pub(super) struct Shard {
    /// Free blocks by class, of the classes whose magazines hold several.
    magazines: [Vec<SlabBlock>; COUNT],
    /// The larger blocks that were freed last, with their classes, the newest at the end. They are here and not on the heap,
    /// so that they share no cache line with those of other shards.
    large: [Option<(usize, SlabBlock)>; LARGE_BLOCKS],
    pub(super) counters: Counters,
    /// Whether the last handle of the pool was dropped; see [`Inner::retire`](super::inner::Inner::retire).
    pub(super) is_retired: bool,
}

/// The capacities of the classes' magazines. Each allocation and free needs one, so they are not divided then.
const CAPACITIES: [u8; COUNT] = {
    let mut capacities = [1; COUNT];
    let mut class = 0;
    while class < COUNT {
        let fit = MAGAZINE_BYTES / SIZES[class];
        if fit > MAGAZINE_BLOCKS {
            capacities[class] = MAGAZINE_BLOCKS as u8;
        } else if fit > 1 {
            capacities[class] = fit as u8;
        }
        class += 1;
    }
    capacities
};

/// The capacity of a class's magazine in blocks.
#[inline]
pub(super) fn capacity(class: usize) -> usize {
    CAPACITIES[class].into()
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            magazines: [const { Vec::new() }; COUNT],
            large: [const { None }; LARGE_BLOCKS],
            counters: Counters::default(),
            is_retired: false,
        }
    }
}

impl Shard {
    /// Takes the free block of the class that was added last.
    #[inline]
    pub(super) fn take(&mut self, class: usize) -> Option<SlabBlock> {
        if capacity(class) > 1 {
            return self.magazines[class].pop();
        }
        let is_of_class = |(of, _): &mut (usize, SlabBlock)| *of == class;
        let newest_first = self.large.iter_mut().rev();
        let (_, block) = newest_first
            .filter_map(|slot| slot.take_if(is_of_class))
            .next()?;
        Some(block)
    }

    /// Adds a free block. Returns the oldest blocks of one class, and that, when there are too many.
    #[inline]
    pub(super) fn put(
        &mut self,
        class: usize,
        block: SlabBlock,
    ) -> Option<(usize, Vec<SlabBlock>)> {
        let capacity = capacity(class);
        if capacity == 1 {
            // The place of the block that was taken last, else that of the oldest one.
            let place = self.large.iter().rposition(Option::is_none).unwrap_or(0);
            self.large[place..].rotate_left(1);
            let oldest = self.large[LARGE_BLOCKS - 1].replace((class, block));
            return oldest.map(|(class, block)| (class, vec![block]));
        }
        let magazine = &mut self.magazines[class];
        magazine.push(block);
        // The newest blocks stay, as they are the most likely to be in the processor's cache.
        (magazine.len() > capacity).then(|| (class, magazine.drain(..=capacity / 2).collect()))
    }

    /// Adds free blocks to a class's magazine.
    pub(super) fn refill(&mut self, class: usize, blocks: Vec<SlabBlock>) {
        self.magazines[class].extend(blocks);
    }

    /// Takes all free blocks, with their classes.
    pub(super) fn drain(&mut self) -> Vec<(usize, Vec<SlabBlock>)> {
        let magazines = self.magazines.iter_mut().map(std::mem::take).enumerate();
        let large = self.large.iter_mut().filter_map(Option::take);
        let large = large.map(|(class, block)| (class, vec![block]));
        magazines
            .chain(large)
            .filter(|(_, blocks)| !blocks.is_empty())
            .collect()
    }
}

/// The shard of this thread, among a power of two.
pub(super) fn of_thread(shards: usize) -> usize {
    thread_number() & (shards - 1)
}

thread_local! {
    /// This thread's number, 0 before its first call.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Threads are numbered in the order of their first call.
fn thread_number() -> usize {
    match NUMBER.get() {
        0 => leave(),
        number => number,
    }
}

/// Gives this thread the next number, and so another shard, because a thread that runs concurrently uses its shard.
pub(super) fn leave() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(number);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_shard_until_it_leaves() {
        const SHARDS: usize = 1 << 30;
        let shard = of_thread(SHARDS);
        assert_eq!(of_thread(SHARDS), shard);
        leave();
        assert_ne!(of_thread(SHARDS), shard);
        assert!(of_thread(4) < 4);
    }
}
