//! The slabs of one size class, and their free blocks.

use std::collections::BTreeSet;
use std::sync::Arc;

use slab::Slab as Slots;
use zeusm_process::Mutex;

use super::address_map;
use super::provider::Chunk;
use super::sizes::SIZES;
use super::slab::{PoolPointer, Slab, SlabBlock, SlabKind};
use crate::history::Place;

/// All slabs of a size class, with their free blocks.
#[derive(Debug, Default)]
pub(super) struct SizeClass(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    slabs: Slots<Entry>,
    /// The slabs with free blocks, without the cached empty one. Blocks come from the first of them, so that the last ones
    /// become empty and can be released.
    available: BTreeSet<usize>,
    /// At most one empty slab of several blocks is cached, for when all others are full; a second one is released.
    empty: Option<usize>,
    /// The sum of the slabs' bytes.
    bytes: usize,
}

/// A slab and its free blocks.
#[derive(Debug)]
struct Entry {
    slab: Arc<Slab>,
    /// Blocks that were freed.
    free: Vec<u32>,
    /// The first block that was never allocated, as were none of the blocks after it.
    unused_from: u32,
}

impl Entry {
    fn pop(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let index = self.unused_from;
            (index < self.slab.count()).then(|| {
                self.unused_from += 1;
                index
            })
        })
    }

    fn is_full(&self) -> bool {
        self.free.is_empty() && self.unused_from == self.slab.count()
    }

    /// Whether every block is free.
    fn is_empty(&self) -> bool {
        self.free.len() == self.unused_from as usize
    }
}

impl SizeClass {
    /// Allocates up to `count` free blocks.
    pub(super) fn allocate(&self, count: usize) -> Vec<SlabBlock> {
        self.0.lock().allocate(count)
    }

    /// Adds a slab over `chunk`, and allocates up to `count` of its blocks.
    pub(super) fn grow(
        &self,
        pool: PoolPointer,
        class: usize,
        chunk: Chunk,
        count: usize,
        place: Place,
    ) -> Vec<SlabBlock> {
        let mut state = self.0.lock();
        let slot = state.slabs.vacant_key();
        let kind = SlabKind::SizeClass {
            class: class as u8,
            slot: slot as u32,
        };
        let slab = Arc::new(Slab::new(pool, chunk, SIZES[class], kind));
        // Registered before another thread can get a block of it: an address must be found from its allocation on.
        address_map::register(&slab, place);
        state.available.insert(slot);
        state.bytes += chunk.size;
        state.slabs.insert(Entry {
            slab,
            free: Vec::new(),
            unused_from: 0,
        });
        state.allocate(count)
    }

    /// Frees blocks, and returns the slabs that this releases.
    pub(super) fn free(&self, blocks: impl IntoIterator<Item = SlabBlock>) -> Vec<Arc<Slab>> {
        let mut state = self.0.lock();
        blocks
            .into_iter()
            .filter_map(|block| state.free(&block))
            .collect()
    }

    /// Releases every empty slab: the cached one, and slabs that were added but never used because blocks of slabs before
    /// them had been freed meanwhile.
    pub(super) fn release_empty(&self) -> Vec<Arc<Slab>> {
        let mut state = self.0.lock();
        state.empty = None;
        let slots: Vec<usize> = state
            .slabs
            .iter()
            .filter(|(_, entry)| entry.is_empty())
            .map(|(slot, _)| slot)
            .collect();
        slots
            .into_iter()
            .map(|slot| {
                state.available.remove(&slot);
                state.remove(slot)
            })
            .collect()
    }

    /// The sum of the slabs' bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.lock().bytes
    }

    /// Releases every slab, when the pool is dropped.
    pub(super) fn take_slabs(&mut self) -> Vec<Arc<Slab>> {
        let state = std::mem::take(self.0.get_mut());
        state
            .slabs
            .into_iter()
            .map(|(_, entry)| entry.slab)
            .collect()
    }
}

impl State {
    fn allocate(&mut self, count: usize) -> Vec<SlabBlock> {
        let mut blocks = Vec::with_capacity(count);
        while blocks.len() < count {
            let slot = match self.available.first() {
                Some(&slot) => slot,
                None => match self.empty.take() {
                    Some(slot) => slot,
                    None => break,
                },
            };
            let entry = &mut self.slabs[slot];
            while blocks.len() < count
                && let Some(index) = entry.pop()
            {
                blocks.push(SlabBlock::new(Arc::clone(&entry.slab), index));
            }
            if entry.is_full() {
                self.available.remove(&slot);
            } else {
                self.available.insert(slot);
            }
        }
        blocks
    }

    fn free(&mut self, block: &SlabBlock) -> Option<Arc<Slab>> {
        let SlabKind::SizeClass { slot, .. } = block.slab.kind else {
            return None;
        };
        let slot = slot as usize;
        let entry = &mut self.slabs[slot];
        entry.free.push(block.index);
        if !entry.is_empty() {
            self.available.insert(slot);
            return None;
        }
        self.available.remove(&slot);
        if self.empty.is_some() || entry.slab.count() == 1 {
            return Some(self.remove(slot));
        }
        // The slab is reset: its blocks are allocated in ascending order again.
        entry.free.clear();
        entry.unused_from = 0;
        self.empty = Some(slot);
        None
    }

    /// Removes an empty slab that is in neither list.
    fn remove(&mut self, slot: usize) -> Arc<Slab> {
        let slab = self.slabs.remove(slot).slab;
        self.bytes -= slab.chunk.size;
        slab
    }
}
