//! The slabs of one size class.

use std::collections::BTreeSet;
use std::sync::Arc;

use slab::Slab as Slots;

use super::provider::Chunk;
use super::ranges;
use super::sizes::SIZES;
use super::slab::{Piece, Slab, Use};
use crate::process::Mutex;

/// All slabs of a class, and which of their blocks nobody has.
#[derive(Debug, Default)]
pub(super) struct Class(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    slabs: Slots<Held>,
    /// The slabs that have free blocks, but for the spare one. The first is taken from, so that the last ones get
    /// their blocks back and can go.
    available: BTreeSet<usize>,
    /// A slab that is all free, for when all others are full; a second one is given up.
    spare: Option<usize>,
    /// The sum of the slabs' bytes.
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    slab: Arc<Slab>,
    /// Blocks that came back.
    free: Vec<u32>,
    /// The first block that never left; those after it did not either.
    fresh: u32,
}

impl Held {
    fn pop(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let index = self.fresh;
            (index < self.slab.count()).then(|| {
                self.fresh += 1;
                index
            })
        })
    }

    fn is_full(&self) -> bool {
        self.free.is_empty() && self.fresh == self.slab.count()
    }

    /// Whether no block is out.
    fn is_unused(&self) -> bool {
        self.free.len() == self.fresh as usize
    }
}

impl Class {
    /// Takes up to `count` free blocks.
    pub(super) fn take(&self, count: usize) -> Vec<Piece> {
        self.0.lock().take(count)
    }

    /// Adds a slab made of `chunk`, and takes up to `count` of its blocks.
    pub(super) fn grow(&self, class: usize, chunk: Chunk, count: usize) -> Vec<Piece> {
        let mut state = self.0.lock();
        let slot = state.slabs.vacant_key();
        let purpose = Use::Class {
            class: class as u8,
            slot: slot as u32,
        };
        let slab = Arc::new(Slab::new(chunk, SIZES[class], purpose));
        // Before any thread can have a block of it: its addresses are looked up from then on.
        ranges::serve(&slab);
        state.available.insert(slot);
        state.bytes += chunk.size;
        state.slabs.insert(Held {
            slab,
            free: Vec::new(),
            fresh: 0,
        });
        state.take(count)
    }

    /// Takes blocks back, and gives up the slabs that are not needed any more.
    pub(super) fn put(&self, pieces: impl IntoIterator<Item = Piece>) -> Vec<Arc<Slab>> {
        let mut state = self.0.lock();
        pieces
            .into_iter()
            .filter_map(|piece| state.put(&piece))
            .collect()
    }

    /// Gives up every slab that nobody uses: the spare one, and any that was added when others, freed meanwhile, came
    /// before it and so never gave a block.
    pub(super) fn release_unused(&self) -> Vec<Arc<Slab>> {
        let mut state = self.0.lock();
        state.spare = None;
        let slots: Vec<usize> = state
            .slabs
            .iter()
            .filter(|(_, held)| held.is_unused())
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

    /// Gives up every slab, for the end of the pool.
    pub(super) fn take_slabs(&mut self) -> Vec<Arc<Slab>> {
        let state = std::mem::take(self.0.get_mut());
        state.slabs.into_iter().map(|(_, held)| held.slab).collect()
    }
}

impl State {
    fn take(&mut self, count: usize) -> Vec<Piece> {
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count {
            let slot = match self.available.first() {
                Some(&slot) => slot,
                None => match self.spare.take() {
                    Some(slot) => slot,
                    None => break,
                },
            };
            let held = &mut self.slabs[slot];
            while taken.len() < count
                && let Some(index) = held.pop()
            {
                taken.push(Piece::new(Arc::clone(&held.slab), index));
            }
            if held.is_full() {
                self.available.remove(&slot);
            } else {
                self.available.insert(slot);
            }
        }
        taken
    }

    fn put(&mut self, piece: &Piece) -> Option<Arc<Slab>> {
        let Use::Class { slot, .. } = piece.slab().purpose() else {
            return None;
        };
        let slot = slot as usize;
        let held = &mut self.slabs[slot];
        held.free.push(piece.index());
        if !held.is_unused() {
            self.available.insert(slot);
            return None;
        }
        self.available.remove(&slot);
        if self.spare.is_some() {
            return Some(self.remove(slot));
        }
        // From here on its blocks go out in ascending order again.
        held.free.clear();
        held.fresh = 0;
        self.spare = Some(slot);
        None
    }

    /// Forgets a slab that is in neither list, none of whose blocks is out.
    fn remove(&mut self, slot: usize) -> Arc<Slab> {
        let slab = self.slabs.remove(slot).slab;
        self.bytes -= slab.chunk().size;
        slab
    }
}
