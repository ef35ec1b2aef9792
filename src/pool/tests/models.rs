//! Models of the pool: its shards, size classes, shard cache and chunk cache, with a provider that only counts bytes.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use zeusm_process::Owned;
use zeusm_process::tests::loom::thread;
use zeusm_process::tests::model;

use crate::Result;
use crate::pool::address_map::{Lookup, lookup};
use crate::pool::chunks::ChunkAllocator;
use crate::pool::inner::Inner;
use crate::pool::options::{Growth, Options};
use crate::pool::provider::Provider;

#[test]
fn small_blocks_of_two_shards() {
    model(
        "pool: small blocks of two shards",
        Some(4),
        small_of_two_shards,
    );
}

#[test]
fn small_blocks_of_one_shard() {
    model(
        "pool: small blocks of one shard",
        Some(4),
        small_of_one_shard,
    );
}

#[test]
fn large_blocks() {
    model("pool: large blocks", Some(4), large);
}

#[test]
fn blocks_while_another_thread_trims() {
    model(
        "pool: blocks while another thread trims",
        Some(4),
        beside_a_trim,
    );
}

// Each thread attempts its allocation up to 16 times, so a higher bound has too many interleavings.
#[test]
fn a_limit_of_one_block() {
    model("pool: a limit of one block", Some(2), one_at_a_time);
}

#[test]
fn two_blocks_that_the_limit_allows() {
    model(
        "pool: two blocks that the limit allows",
        Some(4),
        within_the_limit,
    );
}

#[test]
fn the_last_handle_and_the_last_blocks() {
    model(
        "pool: the last handle and the last blocks",
        Some(4),
        last_handle,
    );
}

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
