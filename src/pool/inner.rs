//! How a pool allocates and frees: from a shard, else from the class, else from the provider.

use std::sync::Arc;

use super::class::Class;
use super::coarse::{Coarse, Unused};
use super::failure::{Callback, Failure};
use super::provider::Provider;
use super::ranges;
use super::shard::{Shard, capacity};
use super::sizes::{self, COUNT, LARGEST_CLASS, SIZES};
use super::slab::{Piece, Slab, Use};
use super::statistics::{Statistics, Sum, total};
use crate::error::{Error, Result};
use crate::process::Mutex;

/// A lock on a cache line of its own, so that threads with different shards share nothing.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(Mutex<Shard>);

/// What all handles and blocks of a pool share in one process.
#[derive(Debug)]
pub(super) struct Inner<P: Provider> {
    shards: Box<[Padded]>,
    classes: [Class; COUNT],
    pub(super) coarse: Coarse<P>,
    pub(super) callback: Callback,
    sum: Sum,
    /// Whether small blocks share slabs, see [`Provider::shares_allocations`].
    has_slabs: bool,
}

/// A block, and whether the provider was asked for it.
struct Found {
    piece: Piece,
    miss: bool,
}

impl<P: Provider> Inner<P> {
    /// `shards` is a power of two.
    pub(super) fn new(coarse: Coarse<P>, shards: usize) -> Self {
        Self {
            shards: (0..shards).map(|_| Padded::default()).collect(),
            classes: std::array::from_fn(|_| Class::default()),
            has_slabs: coarse.provider().shares_allocations(),
            coarse,
            callback: Callback::default(),
            sum: Sum::default(),
        }
    }

    pub(super) fn allocate(&self, shard: usize, size: usize, alignment: usize) -> Result<Piece> {
        let class = self.class_of(size, alignment);
        if let Some(piece) = class.and_then(|class| self.take_kept(shard, class, size)) {
            return Ok(piece);
        }
        let found = self.with_relief(size, alignment, |frugal| match class {
            Some(class) => self.refill(shard, class, frugal),
            None => self.allocate_large(shard, size, alignment),
        });
        let mut shard = self.shards[shard].0.lock();
        match &found {
            Ok(Found { piece, miss }) => {
                let block = piece.slab().block_size();
                shard.counters.allocated(block, size, *miss, &self.sum);
                piece.mark_used(size);
            }
            Err(_) => shard.counters.failed(),
        }
        drop(shard);
        found.map(|found| found.piece)
    }

    /// Allocates only what the shard has a block for, and waits for nothing.
    pub(super) fn allocate_kept(
        &self,
        shard: usize,
        size: usize,
        alignment: usize,
    ) -> Option<Piece> {
        let class = self.class_of(size, alignment)?;
        self.take_kept(shard, class, size)
    }

    /// The class that serves `size` bytes; `None` where the block gets a chunk of its own.
    fn class_of(&self, size: usize, alignment: usize) -> Option<usize> {
        sizes::class_of(size, alignment).filter(|_| self.has_slabs)
    }

    fn take_kept(&self, shard: usize, class: usize, size: usize) -> Option<Piece> {
        let mut shard = self.shards[shard].0.lock();
        let piece = shard.magazines[class].pop()?;
        shard
            .counters
            .allocated(SIZES[class], size, false, &self.sum);
        piece.mark_used(size);
        Some(piece)
    }

    pub(super) fn free(&self, shard: usize, piece: Piece) {
        let (block, asked) = (piece.slab().block_size(), piece.asked());
        piece.mark_free();
        let surplus = {
            let mut own = self.shards[shard].0.lock();
            own.counters.freed(block, asked, &self.sum);
            match piece.slab().purpose() {
                Use::Class { class, .. } => {
                    let class = usize::from(class);
                    own.keep(class, piece).map(|pieces| (class, pieces))
                }
                Use::Large => {
                    drop(own);
                    let unused = Unused::new(piece.into_slab());
                    return self.coarse.release_near(shard, unused);
                }
            }
        };
        if let Some((class, pieces)) = surplus {
            self.put(class, pieces);
        }
    }

    /// Takes blocks of the class: one to return, some for the shard.
    fn refill(&self, shard: usize, class: usize, frugal: bool) -> Result<Found> {
        let wanted = if frugal {
            1
        } else {
            capacity(class).div_ceil(2)
        };
        let mut miss = false;
        let mut pieces = self.classes[class].take(wanted);
        if pieces.is_empty() {
            (pieces, miss) = self.grow(shard, class, wanted, frugal)?;
        }
        let Some(piece) = pieces.pop() else {
            // A slab has one block at least.
            return Err(Error::PoolLimit {
                size: SIZES[class],
                held: self.coarse.reserved(),
                limit: 0,
            });
        };
        if !pieces.is_empty() {
            self.shards[shard].0.lock().magazines[class].append(&mut pieces);
        }
        Ok(Found { piece, miss })
    }

    fn grow(
        &self,
        shard: usize,
        class: usize,
        wanted: usize,
        frugal: bool,
    ) -> Result<(Vec<Piece>, bool)> {
        let size = SIZES[class];
        let growth = &self.coarse.options().growth;
        let blocks = if frugal {
            1
        } else {
            growth.blocks(size, self.classes[class].bytes())
        };
        let alignment = sizes::natural_alignment(class);
        let acquired = self.coarse.acquire(shard, blocks * size, alignment)?;
        let pieces = self.classes[class].grow(class, acquired.unused.chunk, wanted);
        Ok((pieces, acquired.new))
    }

    fn allocate_large(&self, shard: usize, size: usize, alignment: usize) -> Result<Found> {
        let acquired = self.coarse.acquire(shard, size, alignment)?;
        let Unused { chunk, slab } = acquired.unused;
        let slab = slab.unwrap_or_else(|| {
            let slab = Arc::new(Slab::new(chunk, chunk.size, Use::Large));
            ranges::serve(&slab);
            slab
        });
        Ok(Found {
            piece: Piece::new(slab, 0),
            miss: acquired.new,
        })
    }

    /// Tries; then again with everything unused given back; then again if the user's function says so.
    fn with_relief(
        &self,
        size: usize,
        alignment: usize,
        attempt: impl Fn(bool) -> Result<Found>,
    ) -> Result<Found> {
        if let Ok(found) = attempt(false) {
            return Ok(found);
        }
        self.trim(0);
        let mut answer = attempt(true);
        if answer.is_err() {
            match self.callback.ask(|| self.failure(size, alignment)) {
                Ok(true) => {
                    // What was freed meanwhile may be in the cache.
                    self.trim(0);
                    answer = attempt(true);
                }
                Ok(false) => {}
                Err(error) => answer = Err(error),
            }
        }
        answer.map_err(|cause| {
            let failure = self.failure(size, alignment);
            Error::Pool {
                size,
                used_bytes: failure.used_bytes,
                total_bytes: failure.total_bytes,
                limit: failure.limit,
                cause: Box::new(cause),
            }
        })
    }

    fn failure(&self, size: usize, alignment: usize) -> Failure {
        let statistics = self.statistics();
        Failure {
            size,
            alignment,
            used_bytes: statistics.used_bytes,
            total_bytes: statistics.total_bytes,
            limit: statistics.limit,
        }
    }

    /// Takes free blocks back into their class; slabs that are not needed any more go to the cache.
    fn put(&self, class: usize, pieces: Vec<Piece>) {
        for slab in self.classes[class].put(pieces) {
            self.coarse.release(Unused::new(slab));
        }
    }

    /// Gives unused memory back until at most `keep` bytes are held; returns how many bytes went.
    pub(super) fn trim(&self, keep: usize) -> usize {
        let before = self.coarse.reserved();
        self.coarse.trim(keep);
        if self.coarse.reserved() > keep {
            for padded in &self.shards {
                let magazines = std::mem::take(&mut padded.0.lock().magazines);
                for (class, pieces) in magazines.into_iter().enumerate() {
                    self.put(class, pieces);
                }
            }
            for class in &self.classes {
                for slab in class.release_unused() {
                    self.coarse.release(Unused::new(slab));
                }
            }
            self.coarse.trim(keep);
        }
        before.saturating_sub(self.coarse.reserved())
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.settled(|_, statistics| statistics)
    }

    /// Holds every shard while `then` looks at the figures, all of them published.
    pub(super) fn settled<T>(&self, then: impl FnOnce(&Sum, Statistics) -> T) -> T {
        // Whoever holds several shards takes them in this order.
        let mut shards: Vec<_> = self.shards.iter().map(|padded| padded.0.lock()).collect();
        for shard in &mut shards {
            shard.counters.publish(&self.sum);
        }
        let peak = self.sum.settle();
        let mut statistics = total(shards.iter().map(|shard| &shard.counters));
        statistics.peak_bytes = usize::try_from(peak).unwrap_or(0);
        statistics.total_bytes = self.coarse.reserved();
        statistics.free_bytes = statistics.total_bytes.saturating_sub(statistics.used_bytes);
        statistics.limit = self.coarse.limit();
        then(&self.sum, statistics)
    }
}

impl<P: Provider> Drop for Inner<P> {
    fn drop(&mut self) {
        // No block is in use: each would keep this alive.
        for class in &mut self.classes {
            for slab in class.take_slabs() {
                self.coarse.release(Unused::new(slab));
            }
        }
        self.coarse.trim(0);
    }
}

const _: () = assert!(LARGEST_CLASS == SIZES[COUNT - 1]);
