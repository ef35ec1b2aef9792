//! A memory pool: allocations at a fraction of the cost of a provider's call.
//!
//! A [`Pool`] takes chunks from a [`Provider`] and divides them into blocks. Small blocks belong to size classes, eight
//! between a power of two and the next, and are cut from slabs. A larger block is a chunk of its own, which is
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
mod peak;
mod provider;
mod registry;
mod retries;
mod shard;
mod shard_cache;
mod size_class;
mod sizes;
mod slab;
mod statistics;
#[cfg(all(test, loom))]
mod tests;

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};

pub use address_map::{HeldSlab, Lookup, lookup, slabs};
pub use failure::Failure;
pub use options::{Growth, Options};
pub use provider::Provider;
#[cfg(target_os = "linux")] // Used by `ipc` only.
pub(crate) use registry::retry_if;
pub(crate) use registry::retry_out_of_memory;
pub use sizes::{LARGEST_ALIGNMENT, LARGEST_CLASS, SMALLEST_ALIGNMENT};
pub use statistics::{Report, Statistics};

use self::chunks::ChunkAllocator;
use self::inner::Inner;
use self::slab::SlabBlock;
use crate::error::{Error, Result};
use crate::history::Place;
use zeusm_process::{Local, Owned};

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
    handle: Local<LastHandle<P>>,
}

/// The handles' reference to the pool's state in one process.
struct LastHandle<P: Provider>(Arc<Owned<Inner<P>>>);

impl<P: Provider> Drop for LastHandle<P> {
    fn drop(&mut self) {
        Inner::retire(Arc::clone(&self.0));
    }
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
            handle: Local::new(),
        }))
    }

    /// Allocates `size` bytes, at least one, at an alignment of 0 (which means [`SMALLEST_ALIGNMENT`]) or a power of two.
    ///
    /// # Errors
    /// [`Error::Alignment`] for any other alignment or one above [`LARGEST_ALIGNMENT`]; [`Error::Pool`] with the
    /// figures when the provider or the limit refuses even after all free memory was returned to the provider, also that of
    /// other pools if the provider is out of memory, and the failure callback was called.
    pub fn allocate(&self, size: usize, alignment: usize) -> Result<Block<P>> {
        check_alignment(alignment)?;
        let inner = self.inner();
        let block = inner.allocate(inner.shard(), size.max(1), alignment)?;
        Ok(Block::new(block))
    }

    /// As [`allocate`](Self::allocate) if this thread's shard has a free block of the size, else `None`. It never calls the
    /// provider: a caller can use it with a lock held, and release the lock before a slower allocation.
    ///
    /// Inlined, as its result is a structure that would be copied right after it was written, which stalls the processor.
    #[must_use]
    #[inline(always)]
    pub fn allocate_cached(&self, size: usize, alignment: usize) -> Option<Block<P>> {
        check_alignment(alignment).ok()?;
        let inner = self.inner();
        let block = inner.allocate_cached(inner.shard(), size.max(1), alignment)?;
        Some(Block::new(block))
    }

    /// The provider.
    #[must_use]
    pub fn provider(&self) -> &P {
        &self.0.provider
    }

    /// The place of its memory, with its number: that of its events in the [history](crate::history) and of its
    /// [`slabs`].
    #[must_use]
    pub fn place(&self) -> Place {
        self.inner().chunks.place
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
        self.inner()
            .with_statistics(|peaks, now| peaks.reset(now.used_bytes as i64));
    }

    /// A scope that counts from now on, until it is dropped.
    #[must_use]
    pub fn scope(&self) -> Scope<P> {
        let (begin, peak) = self
            .inner()
            .with_statistics(|peaks, now| (now, peaks.scope(now.used_bytes as i64)));
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

    /// Sets the function that is called before an allocation fails, unless its size alone exceeds the limit. `Ok(true)` asks
    /// for another attempt, after whose failure it is called again, up to 16 times in a row without a new minimum of the
    /// bytes in use; an error becomes the cause of the failure. The function may use the pool; an
    /// allocation that fails inside of it does not call it again. A panic in it unwinds through the allocation.
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
        &self.0.handle.get_or_init(|| self.0.new_inner()).0
    }
}

impl<P: Provider> Shared<P> {
    /// The state of an empty pool for this process.
    fn new_inner(&self) -> LastHandle<P> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // Twice as many shards as processors, so that few threads share one by chance.
        let shards = (2 * threads).next_power_of_two().min(MAX_SHARDS);
        let (provider, limit) = (Arc::clone(&self.provider), Arc::clone(&self.limit));
        let chunks = ChunkAllocator::new(provider, self.options, self.number, limit, shards);
        let inner = Arc::new(Owned::new(Inner::new(chunks, shards)));
        registry::register(&inner);
        LastHandle(inner)
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
    block: ManuallyDrop<SlabBlock>,
    pool: PhantomData<Arc<Owned<Inner<P>>>>,
}

// There may be millions of them.
const _: () = assert!(size_of::<Option<SlabBlock>>() == 16);

impl<P: Provider> Block<P> {
    /// `block` must be of a pool with this type of provider.
    fn new(block: SlabBlock) -> Self {
        Self {
            block: ManuallyDrop::new(block),
            pool: PhantomData,
        }
    }

    /// The address of the memory.
    #[must_use]
    #[inline]
    pub fn address(&self) -> NonNull<c_void> {
        self.block.address()
    }

    /// The requested size in bytes.
    #[must_use]
    #[inline]
    pub fn size(&self) -> usize {
        self.block.requested()
    }

    /// A flag for the owner of the block, false at first and when it is dropped.
    pub(crate) fn mark(&self) -> &AtomicBool {
        &self.block.is_marked
    }

    /// The provider of its pool.
    #[must_use]
    #[inline]
    pub fn provider(&self) -> &P {
        // SAFETY: a pool with this type of provider made the block, which is not freed as long as the reference lives.
        let inner = unsafe { Inner::<P>::of(&self.block).as_ref() };
        &inner.chunks.provider
    }
}

impl<P: Provider> Drop for Block<P> {
    fn drop(&mut self) {
        // SAFETY: a pool with this type of provider made the block, which is not used after it is taken.
        unsafe {
            let block = ManuallyDrop::take(&mut self.block);
            // This thread's shard, so that it does not contend with the thread that allocated the block.
            let shard = Inner::<P>::of(&block).as_ref().shard();
            Inner::<P>::free(shard, block);
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
