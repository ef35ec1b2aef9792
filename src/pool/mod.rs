//! A memory pool: allocations in a fraction of what a provider's call costs.
//!
//! A [`Pool`] takes coarse memory from a [`Provider`] and divides it. Small blocks are of size classes, powers of two
//! and the midpoints between them, cut from slabs; larger ones are pieces of the provider's, which are kept for a
//! while after use. All that is known of a block is kept apart from it: the host never looks at the memory.
//!
//! ```text
//! Pool --allocate--> Shard   free blocks for a few threads          one lock each, hardly ever contended
//!                    Class   the slabs of one size                  one lock each
//!                    Nearby  the large chunk freed last             one lock for each shard
//!                    Coarse  unused chunks, limit                   one lock
//!                    Provider::allocate                             no lock
//! ```
//!
//! **A block is never handed out while work on it runs.** Blocks come back when their owner, a [`Block`], is dropped.
//! Whatever zeusm submits owns or borrows its operands until its event is complete: an [`Operation`](crate::Operation)
//! has them, and when it is dropped unfinished, [`Queue::keep`](crate::RawQueue::keep) does. So the drop comes after the
//! work, and the pool needs no quarantine. Who frees memory that other work still uses, submitted by a raw pointer,
//! hands it over in the same way: `queue.keep(&event, allocation)`.
//!
//! Names follow CuPy's and RMM's pools where they have one.

mod class;
mod coarse;
mod failure;
mod inner;
mod nearby;
mod options;
mod provider;
mod ranges;
mod shard;
mod sizes;
mod slab;
mod statistics;

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

pub use failure::Failure;
pub use options::{Growth, Options};
pub use provider::Provider;
pub use ranges::{Found, find};
pub use sizes::{LARGEST_ALIGNMENT, LARGEST_CLASS, SMALLEST_ALIGNMENT};
pub use statistics::{Report, Statistics};

use self::coarse::Coarse;
use self::inner::Inner;
use self::slab::Piece;
use crate::error::{Error, Result};
use crate::process::{Local, Own};

/// A pool over a provider. Cheap to clone; any thread may use it.
///
/// Dropping the last clone leaves live blocks as they are; the memory goes back to the provider with the last of them.
///
/// In a fork's child the pool is another one over the same provider, with the options and the limit but without the
/// failure callback: it begins empty. Blocks that the child inherited stay as they are, and are forgotten when dropped.
pub struct Pool<P: Provider>(Arc<Shared<P>>);

/// What a pool is in whichever process.
struct Shared<P: Provider> {
    provider: Arc<P>,
    options: Options,
    /// The most bytes that it may hold; `usize::MAX` for no limit.
    limit: Arc<AtomicUsize>,
    /// As many as there are shards, a power of two.
    keepers: Local<Box<[Arc<Keeper<P>>]>>,
}

/// What a block keeps its pool alive with: one for each shard, so that threads do not meet at one counter.
#[repr(align(128))]
struct Keeper<P: Provider> {
    inner: Arc<Own<Inner<P>>>,
    shard: usize,
}

/// The most shards of a pool.
const MOST_SHARDS: usize = 16;

impl<P: Provider> Pool<P> {
    /// A pool that holds nothing yet.
    #[must_use]
    pub fn new(provider: P, options: Options) -> Self {
        Self(Arc::new(Shared {
            provider: Arc::new(provider),
            options,
            limit: Arc::new(AtomicUsize::new(options.limit.unwrap_or(usize::MAX))),
            keepers: Local::new(),
        }))
    }

    /// Allocates `size` bytes at an alignment of 0 (which means [`SMALLEST_ALIGNMENT`]) or a power of two.
    ///
    /// # Errors
    /// [`Error::Alignment`] for any other alignment or one above [`LARGEST_ALIGNMENT`]; [`Error::Pool`] with the
    /// figures when the provider or the limit refuses even after all unused memory was given back and the failure
    /// callback was asked.
    pub fn allocate(&self, size: usize, alignment: usize) -> Result<Block<P>> {
        check_alignment(alignment)?;
        let keeper = self.keeper();
        let piece = keeper
            .inner
            .allocate(keeper.shard, size.max(1), alignment)?;
        Ok(Block {
            keeper: Arc::clone(keeper),
            piece: Some(piece),
        })
    }

    /// As [`allocate`](Self::allocate) where a block lies ready for this thread, else `None`: for callers who would
    /// rather let go of something first when it may take longer.
    #[must_use]
    pub fn allocate_kept(&self, size: usize, alignment: usize) -> Option<Block<P>> {
        check_alignment(alignment).ok()?;
        let keeper = self.keeper();
        let piece = keeper
            .inner
            .allocate_kept(keeper.shard, size.max(1), alignment)?;
        Some(Block {
            keeper: Arc::clone(keeper),
            piece: Some(piece),
        })
    }

    /// The provider.
    #[must_use]
    pub fn provider(&self) -> &P {
        &self.0.provider
    }

    /// What the pool was told at its beginning.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// The figures of this moment.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.inner().statistics()
    }

    /// Begins a new peak at what is in use now.
    pub fn reset_peak(&self) {
        self.inner().settled(|sum, _| sum.reset_peak());
    }

    /// Counts what happens until it is dropped.
    #[must_use]
    pub fn scope(&self) -> Scope<P> {
        let (begin, peak) = self
            .inner()
            .settled(|sum, statistics| (statistics, sum.scope()));
        Scope {
            inner: Arc::clone(self.inner()),
            begin,
            peak,
        }
    }

    /// Gives unused memory back to the provider until at most `keep` bytes are held, or only what is in use shares
    /// a slab with; returns how many bytes went.
    pub fn trim(&self, keep: usize) -> usize {
        self.inner().trim(keep)
    }

    /// Gives all unused memory back to the provider; returns how many bytes went.
    pub fn free_all_blocks(&self) -> usize {
        self.trim(0)
    }

    /// Lets the pool hold at most `limit` bytes, in use or not; gives unused memory back if it holds more. Where more
    /// is in use, it fails to grow until enough of it is freed.
    pub fn set_limit(&self, limit: Option<usize>) {
        let most = limit.unwrap_or(usize::MAX);
        self.0.limit.store(most, Ordering::Relaxed);
        if let Some(limit) = limit {
            self.trim(limit);
        }
    }

    /// Sets what is asked before an allocation fails: `Ok(true)` to have it tried once more, an error to fail with it.
    /// The function may use the pool and free memory; what it allocates in vain does not call it again. A panic in it
    /// goes to whoever allocates.
    pub fn set_failure_callback(
        &self,
        callback: impl Fn(&Failure) -> Result<bool> + Send + Sync + 'static,
    ) {
        self.inner().callback.set(Some(Arc::new(callback)));
    }

    /// Asks nobody any more before an allocation fails.
    pub fn clear_failure_callback(&self) {
        self.inner().callback.set(None);
    }

    fn inner(&self) -> &Arc<Own<Inner<P>>> {
        &self.keeper().inner
    }

    /// This thread's.
    fn keeper(&self) -> &Arc<Keeper<P>> {
        let keepers = self.0.keepers.get_or_init(|| self.0.keepers());
        &keepers[shard::thread_number() & (keepers.len() - 1)]
    }
}

impl<P: Provider> Shared<P> {
    /// This process's, of a pool that holds nothing yet.
    fn keepers(&self) -> Box<[Arc<Keeper<P>>]> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // Twice as many as run at once: then few threads meet by chance.
        let shards = (2 * threads).next_power_of_two().min(MOST_SHARDS);
        let (provider, limit) = (Arc::clone(&self.provider), Arc::clone(&self.limit));
        let coarse = Coarse::new(provider, self.options, limit, shards);
        let inner = Arc::new(Own::new(Inner::new(coarse, shards)));
        let keeper = |shard| {
            Arc::new(Keeper {
                inner: Arc::clone(&inner),
                shard,
            })
        };
        (0..shards).map(keeper).collect()
    }
}

impl<P: Provider> Clone for Pool<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P: Provider> fmt::Debug for Pool<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pool")
            .field("options", self.options())
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}

/// Memory of a pool, which gets it back when this is dropped, on whatever thread.
pub struct Block<P: Provider> {
    keeper: Arc<Keeper<P>>,
    /// `Some` until it is dropped.
    piece: Option<Piece>,
}

impl<P: Provider> Block<P> {
    /// Where the memory begins.
    #[must_use]
    pub fn address(&self) -> NonNull<c_void> {
        self.piece
            .as_ref()
            .map_or(NonNull::dangling(), Piece::address)
    }

    /// How many bytes were asked for.
    #[must_use]
    pub fn size(&self) -> usize {
        self.piece.as_ref().map_or(0, Piece::asked)
    }

    /// The provider of its pool.
    #[must_use]
    pub fn provider(&self) -> &P {
        self.keeper.inner.coarse.provider()
    }
}

impl<P: Provider> Drop for Block<P> {
    fn drop(&mut self) {
        if let Some(piece) = self.piece.take() {
            let Keeper { inner, shard } = &*self.keeper;
            if inner.is_inherited() {
                // The memory is the parent's; no allocation is there any more for this process.
                piece.mark_free();
            } else {
                inner.free(*shard, piece);
            }
        }
    }
}

impl<P: Provider> fmt::Debug for Block<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "<block of {} bytes at {:?}>",
            self.size(),
            self.address()
        )
    }
}

/// Counts what happens in a pool from its beginning on. Scopes may overlap and nest.
#[derive(Debug)]
pub struct Scope<P: Provider> {
    inner: Arc<Own<Inner<P>>>,
    begin: Statistics,
    peak: Arc<AtomicI64>,
}

impl<P: Provider> Scope<P> {
    /// What has happened so far; nothing, in a fork's child, of a scope that it inherited.
    #[must_use]
    pub fn report(&self) -> Report {
        if self.inner.is_inherited() {
            return Report::default();
        }
        self.inner
            .settled(|_, now| Report::between(&self.begin, &now, self.peak.load(Ordering::Relaxed)))
    }
}

/// `Ok` for 0 and powers of two up to the largest alignment.
pub(crate) fn check_alignment(alignment: usize) -> Result<()> {
    if alignment > LARGEST_ALIGNMENT || (alignment != 0 && !alignment.is_power_of_two()) {
        return Err(Error::Alignment {
            alignment,
            limit: LARGEST_ALIGNMENT,
        });
    }
    Ok(())
}
