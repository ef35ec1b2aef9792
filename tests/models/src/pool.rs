//! Models of the pool: its shards, size classes, shard cache and chunk cache, with a provider that only counts bytes.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use loom::thread;

use self::address_map::{Lookup, lookup};
use self::chunks::ChunkAllocator;
use self::inner::Inner;
use self::options::{Growth, Options};
use self::provider::Provider;
use crate::{Model, Result};
use zeusm_process::Owned;

#[path = "../../../src/pool/address_map.rs"]
mod address_map;
#[path = "../../../src/pool/chunks.rs"]
mod chunks;
#[path = "../../../src/pool/failure.rs"]
mod failure;
#[path = "../../../src/pool/inner.rs"]
mod inner;

#[path = "../../../src/pool/options.rs"]
mod options;
#[path = "../../../src/pool/peak.rs"]
mod peak;
#[path = "../../../src/pool/provider.rs"]
mod provider;
/// Replaces the list of the process's pools: the models have one pool.
mod registry {
    pub(super) fn retry_out_of_memory<T>(
        attempt: impl Fn() -> crate::Result<T>,
    ) -> crate::Result<T> {
        attempt()
    }
}
#[path = "../../../src/pool/retries.rs"]
mod retries;
#[path = "../../../src/pool/shard.rs"]
mod shard;
#[path = "../../../src/pool/shard_cache.rs"]
mod shard_cache;
#[path = "../../../src/pool/size_class.rs"]
mod size_class;
#[path = "../../../src/pool/sizes.rs"]
mod sizes;
#[path = "../../../src/pool/slab.rs"]
mod slab;
#[path = "../../../src/pool/statistics.rs"]
mod statistics;
#[path = "../../../src/pool/transfers.rs"]
mod transfers;

pub const MODELS: &[Model] = &[
    (
        "pool: small blocks of two shards",
        Some(4),
        small_of_two_shards,
    ),
    (
        "pool: small blocks of one shard",
        Some(4),
        small_of_one_shard,
    ),
    ("pool: large blocks", Some(4), large),
    (
        "pool: blocks while another thread trims",
        Some(4),
        beside_a_trim,
    ),
    // Each thread attempts its allocation up to 16 times, so a higher bound has too many interleavings.
    ("pool: a limit of one block", Some(2), one_at_a_time),
    (
        "pool: two blocks that the limit allows",
        Some(4),
        within_the_limit,
    ),
    (
        "pool: the last handle and the last blocks",
        Some(4),
        last_handle,
    ),
];

/// A slab holds two blocks of this size. A shard takes one at a time, so the other is available to another thread.
const SMALL: usize = 64 << 10;
const SLAB: usize = 2 * SMALL;
const LARGE: usize = 2 << 20;

/// A provider of unique addresses without memory.
#[derive(Debug, Default)]
struct Addresses {
    given: AtomicUsize,
    out: AtomicUsize,
}

// SAFETY: the addresses ascend by at least the size, so that chunks never overlap.
unsafe impl Provider for Addresses {
    fn allocate(&self, size: usize, _alignment: usize) -> Result<NonNull<c_void>> {
        let before = self
            .given
            .fetch_add(size.next_multiple_of(LARGE), Ordering::Relaxed);
        self.out.fetch_add(size, Ordering::Relaxed);
        let address = std::ptr::without_provenance_mut(before + LARGE);
        Ok(NonNull::new(address).expect("beyond LARGE"))
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        let found = lookup(address.addr().get());
        assert_eq!(found, Lookup::NotPooled, "still registered");
        self.out.fetch_sub(size, Ordering::Relaxed);
    }
}

/// A pool, and the addresses of the allocated blocks.
struct World {
    inner: Arc<Owned<Inner<Addresses>>>,
    provider: Arc<Addresses>,
    owned: Mutex<BTreeSet<usize>>,
}

impl World {
    fn new(shards: usize, limit: Option<usize>) -> Arc<Self> {
        let growth = Growth {
            first_slab: SLAB,
            largest_slab: SLAB,
            ..Growth::default()
        };
        let options = Options {
            growth,
            limit,
            ..Options::default()
        };
        let provider = Arc::<Addresses>::default();
        let limit = Arc::new(AtomicUsize::new(limit.unwrap_or(usize::MAX)));
        let chunks = ChunkAllocator::new(Arc::clone(&provider), options, 1, limit, shards);
        Arc::new(Self {
            inner: Arc::new(Owned::new(Inner::new(chunks, shards))),
            provider,
            owned: Mutex::default(),
        })
    }

    fn owned(&self) -> std::sync::MutexGuard<'_, BTreeSet<usize>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates, looks up and frees a block; `false` when the allocation failed.
    fn cycle(&self, shard: usize, size: usize) -> bool {
        let Ok(block) = self.inner.allocate(shard, size - 8, 0) else {
            return false;
        };
        let address = block.address().addr().get();
        assert!(self.owned().insert(address), "the block has two owners");
        assert_eq!(
            lookup(address),
            Lookup::Allocated(address..address + size - 8)
        );
        self.owned().remove(&address);
        // SAFETY: the pool has this type of provider.
        unsafe { Inner::<Addresses>::free(shard, block) };
        true
    }

    /// Checks that all blocks are free, and that the pool's drop returns all memory to the provider.
    fn end(self: Arc<Self>) {
        let statistics = self.inner.statistics();
        assert_eq!((statistics.used_count, statistics.used_bytes), (0, 0));
        assert_eq!(
            statistics.total_bytes,
            self.provider.out.load(Ordering::Relaxed)
        );
        let provider = Arc::clone(&self.provider);
        let world = Arc::into_inner(self).expect("the threads have ended");
        Inner::retire(world.inner);
        assert_eq!(provider.out.load(Ordering::Relaxed), 0);
    }
}

/// Runs two threads concurrently; both must succeed.
fn together(
    world: Arc<World>,
    first: impl FnOnce(&World) -> bool + 'static,
    second: impl FnOnce(&World) -> bool,
) {
    let other = Arc::clone(&world);
    let thread = thread::spawn(move || first(&other));
    assert!(second(&world));
    assert!(thread.join().expect("no panic"));
    world.end();
}

fn small_of_two_shards() {
    let cycle = |shard| move |world: &World| world.cycle(shard, SMALL) && world.cycle(shard, SMALL);
    together(World::new(2, None), cycle(0), cycle(1));
}

fn small_of_one_shard() {
    let cycle = |world: &World| world.cycle(0, SMALL) && world.cycle(0, SMALL);
    together(World::new(1, None), cycle, cycle);
}

fn large() {
    let cycle = |shard| move |world: &World| world.cycle(shard, LARGE) && world.cycle(shard, LARGE);
    together(World::new(2, None), cycle(0), cycle(1));
}

fn beside_a_trim() {
    let world = World::new(1, None);
    assert!(world.cycle(0, SMALL) && world.cycle(0, LARGE));
    let cycle = |world: &World| world.cycle(0, SMALL) && world.cycle(0, LARGE);
    together(world, cycle, |world| {
        world.inner.trim(0);
        true
    });
}

/// The limit allows one block: an allocation may fail while the other thread holds the block, but not after its release.
fn one_at_a_time() {
    let try_it = |shard| {
        move |world: &World| {
            world.cycle(shard, LARGE);
            true
        }
    };
    let world = World::new(2, Some(LARGE));
    let other = Arc::clone(&world);
    let thread = thread::spawn(move || try_it(0)(&other));
    try_it(1)(&world);
    thread.join().expect("no panic");
    assert!(world.cycle(0, LARGE) && world.cycle(1, LARGE));
    world.end();
}

/// The limit allows both blocks, once the larger one that is cached has been returned to the provider by either thread.
fn within_the_limit() {
    let world = World::new(2, Some(2 * LARGE));
    assert!(world.cycle(0, 2 * LARGE));
    let cycle = |shard| move |world: &World| world.cycle(shard, LARGE);
    together(world, cycle(0), cycle(1));
}

/// The pool is dropped by its last handle or by its last block, whichever is dropped last.
fn last_handle() {
    let World {
        inner, provider, ..
    } = Arc::into_inner(World::new(2, None)).expect("no other owner");
    let [first, second] =
        [(0, SMALL), (1, LARGE)].map(|(shard, size)| inner.allocate(shard, size, 0).expect("room"));
    let free = |shard, block| {
        // SAFETY: the pool has this type of provider.
        move || unsafe { Inner::<Addresses>::free(shard, block) }
    };
    let thread = thread::spawn(free(0, first));
    Inner::retire(inner);
    free(1, second)();
    thread.join().expect("no panic");
    assert_eq!(provider.out.load(Ordering::Relaxed), 0);
}
