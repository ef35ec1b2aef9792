//! A memory pool: allocations at a fraction of the cost of a provider's call.
//!
//! A [`Pool`] takes chunks from a [`Provider`] and divides them into blocks. Small blocks belong to size classes, which are
//! powers of two and the midpoints between them, and are cut from slabs. A larger block is a chunk of its own, which is
//! cached when it is freed. The metadata of a block is kept outside of the memory: the host never accesses the memory.
//!
//! ```text
//! Pool --allocate--> Shard           free blocks for a few threads      one lock each, rarely contended
//!                    SizeClass       the slabs of one size              one lock each
//!                    ShardCache      the large chunk freed last         one lock for each shard
//!                    ChunkAllocator  free chunks, limit                 one lock
//!                    Provider::allocate                                 no lock
//! ```
//!
//! **A block is not reused while work on it is in flight.** A block is freed when its owner, a [`Block`], is dropped, and
//! all work that zeusm submits owns or borrows its operands until its event is complete: an
//! [`Operation`](crate::Operation) owns them, and when it is dropped before it is complete, the queue retains them
//! ([`RawQueue::retain`](crate::RawQueue::retain)). The drop therefore comes after the work, and the pool needs no quarantine.
//! A caller that submits work by raw pointers has the queue retain the memory in the same way:
//! `queue.retain(&event, allocation)`.
//!
//! Names follow CuPy's and RMM's pools where those have one.

mod address_map;
mod chunks;
mod failure;
mod inner;
mod options;
mod provider;
mod registry;
mod shard;
mod shard_cache;
mod size_class;
mod sizes;
mod slab;
mod statistics;

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};

pub use address_map::{HeldSlab, Lookup, lookup, slabs};
pub use failure::Failure;
pub use options::{Growth, Options};
pub use provider::Provider;
pub(crate) use registry::retry_out_of_memory;
pub use sizes::{LARGEST_ALIGNMENT, LARGEST_CLASS, SMALLEST_ALIGNMENT};
pub use statistics::{Report, Statistics};

use self::chunks::ChunkAllocator;
use self::inner::Inner;
use self::slab::SlabBlock;
use crate::error::{Error, Result};
use crate::history::{self, Place};
use crate::process::{Local, Owned};

/// A pool over a provider. Cheap to clone; any thread may use it.
///
/// Live blocks stay valid when the last clone is dropped; the memory is returned to the provider with the last block.
///
/// In a fork's child the pool is a new, empty one over the same provider, with the same options and limit and without the
/// failure callback. Blocks that the child inherited stay valid; their memory is not reused after they are dropped.
pub struct Pool<P: Provider>(Arc<Shared<P>>);

/// The part of a pool that a fork's child inherits.
struct Shared<P: Provider> {
    provider: Arc<P>,
    options: Options,
    /// Unique in the process, from 1 on.
    number: u32,
    /// The maximum number of bytes that it may hold; `usize::MAX` for no limit.
    limit: Arc<AtomicUsize>,
    /// One for each shard, a power of two.
    shard_handles: Local<Box<[Arc<ShardHandle<P>>]>>,
}

/// A block's reference to its pool. There is one for each shard, so that threads do not contend for one reference count.
#[repr(align(128))]
struct ShardHandle<P: Provider> {
    inner: Arc<Owned<Inner<P>>>,
    shard: usize,
}

/// The largest number of shards of a pool.
const MAX_SHARDS: usize = 16;

impl<P: Provider> Pool<P> {
    /// An empty pool.
    #[must_use]
    pub fn new(provider: P, options: Options) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self(Arc::new(Shared {
            provider: Arc::new(provider),
            options,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            limit: Arc::new(AtomicUsize::new(options.limit.unwrap_or(usize::MAX))),
            shard_handles: Local::new(),
        }))
    }

    /// Allocates `size` bytes at an alignment of 0 (which means [`SMALLEST_ALIGNMENT`]) or a power of two.
    ///
    /// # Errors
    /// [`Error::Alignment`] for any other alignment or one above [`LARGEST_ALIGNMENT`]; [`Error::Pool`] with the
    /// figures when the provider or the limit refuses even after all free memory was returned to the provider, also that of
    /// other pools if the provider is out of memory, and the failure callback was called.
    pub fn allocate(&self, size: usize, alignment: usize) -> Result<Block<P>> {
        check_alignment(alignment)?;
        let shard_handle = self.shard_handle();
        let block = shard_handle
            .inner
            .allocate(shard_handle.shard, size.max(1), alignment)?;
        Ok(Block {
            shard_handle: Arc::clone(shard_handle),
            block: Some(block),
        })
    }

    /// As [`allocate`](Self::allocate) if this thread's shard has a free block of the size, else `None`. It never calls the
    /// provider: a caller can use it with a lock held, and release the lock before a slower allocation.
    #[must_use]
    pub fn allocate_cached(&self, size: usize, alignment: usize) -> Option<Block<P>> {
        check_alignment(alignment).ok()?;
        let shard_handle = self.shard_handle();
        let block =
            shard_handle
                .inner
                .allocate_cached(shard_handle.shard, size.max(1), alignment)?;
        Some(Block {
            shard_handle: Arc::clone(shard_handle),
            block: Some(block),
        })
    }

    /// The provider.
    #[must_use]
    pub fn provider(&self) -> &P {
        &self.0.provider
    }

    /// The place of its memory, with its number: that of its events in the [history] and of its
    /// [`slabs`].
    #[must_use]
    pub fn place(&self) -> Place {
        *self.inner().chunks.place()
    }

    /// The options that the pool was made with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// The current statistics.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.inner().statistics()
    }

    /// Resets the peak to the bytes in use now.
    pub fn reset_peak(&self) {
        self.inner().with_statistics(|sum, _| sum.reset_peak());
    }

    /// A scope that counts from now on, until it is dropped.
    #[must_use]
    pub fn scope(&self) -> Scope<P> {
        let (begin, peak) = self
            .inner()
            .with_statistics(|sum, statistics| (statistics, sum.scope()));
        Scope {
            inner: Arc::clone(self.inner()),
            begin,
            peak,
        }
    }

    /// Returns free memory to the provider until at most `keep` bytes are held. Slabs with blocks in use cannot be returned.
    /// Returns the number of bytes that were returned.
    pub fn trim(&self, keep: usize) -> usize {
        self.inner().trim(keep)
    }

    /// Returns all free memory to the provider, as [`trim`](Self::trim) with 0.
    pub fn free_all_blocks(&self) -> usize {
        self.trim(0)
    }

    /// Limits the bytes that the pool holds, in use or not, and returns free memory to the provider if it holds more. If
    /// more bytes are in use, the pool cannot grow until enough of them are freed.
    pub fn set_limit(&self, limit: Option<usize>) {
        let most = limit.unwrap_or(usize::MAX);
        self.0.limit.store(most, Ordering::Relaxed);
        if let Some(limit) = limit {
            self.trim(limit);
        }
    }

    /// Sets the function that is called before an allocation fails. `Ok(true)` asks for another attempt, an error becomes
    /// the cause of the failure. The function may use the pool; an allocation that fails inside of it does not call it
    /// again. A panic in it unwinds through the allocation.
    pub fn set_failure_callback(
        &self,
        callback: impl Fn(&Failure) -> Result<bool> + Send + Sync + 'static,
    ) {
        self.inner().callback.set(Some(Arc::new(callback)));
    }

    /// Removes the failure callback.
    pub fn clear_failure_callback(&self) {
        self.inner().callback.set(None);
    }

    fn inner(&self) -> &Arc<Owned<Inner<P>>> {
        &self.shard_handle().inner
    }

    /// The handle of this thread's shard.
    fn shard_handle(&self) -> &Arc<ShardHandle<P>> {
        let shard_handles = self.0.shard_handles.get_or_init(|| self.0.new_shards());
        &shard_handles[shard::thread_number() & (shard_handles.len() - 1)]
    }
}

impl<P: Provider> Shared<P> {
    /// The shards of an empty pool for this process.
    fn new_shards(&self) -> Box<[Arc<ShardHandle<P>>]> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // Twice as many shards as processors, so that few threads share one by chance.
        let shards = (2 * threads).next_power_of_two().min(MAX_SHARDS);
        let (provider, limit) = (Arc::clone(&self.provider), Arc::clone(&self.limit));
        let chunks = ChunkAllocator::new(provider, self.options, self.number, limit, shards);
        let inner = Arc::new(Owned::new(Inner::new(chunks, shards)));
        registry::register(&inner);
        let shard_handle = |shard| {
            Arc::new(ShardHandle {
                inner: Arc::clone(&inner),
                shard,
            })
        };
        (0..shards).map(shard_handle).collect()
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

/// Memory of a pool, freed to the pool when this is dropped, on any thread.
pub struct Block<P: Provider> {
    shard_handle: Arc<ShardHandle<P>>,
    /// `Some` until it is dropped.
    block: Option<SlabBlock>,
}

impl<P: Provider> Block<P> {
    /// The address of the memory.
    #[must_use]
    pub fn address(&self) -> NonNull<c_void> {
        self.block
            .as_ref()
            .map_or(NonNull::dangling(), SlabBlock::address)
    }

    /// The requested size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.block.as_ref().map_or(0, SlabBlock::requested)
    }

    /// The provider of its pool.
    #[must_use]
    pub fn provider(&self) -> &P {
        self.shard_handle.inner.chunks.provider()
    }
}

impl<P: Provider> Drop for Block<P> {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            let ShardHandle { inner, shard } = &*self.shard_handle;
            if inner.is_inherited() {
                // The parent's pool owns the memory; this process only records that the block is not allocated any more.
                let place = inner.chunks.place();
                history::freed(|| (block.address().addr().get(), block.requested()), place);
                block.mark_free();
            } else {
                inner.free(*shard, block);
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

/// Counts the allocations of a pool from its creation on. Scopes may overlap and nest.
#[derive(Debug)]
pub struct Scope<P: Provider> {
    inner: Arc<Owned<Inner<P>>>,
    begin: Statistics,
    peak: Arc<AtomicI64>,
}

impl<P: Provider> Scope<P> {
    /// The changes so far. In a fork's child, an inherited scope reports no changes.
    #[must_use]
    pub fn report(&self) -> Report {
        if self.inner.is_inherited() {
            return Report::default();
        }
        self.inner.with_statistics(|_, now| {
            Report::between(&self.begin, &now, self.peak.load(Ordering::Relaxed))
        })
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
