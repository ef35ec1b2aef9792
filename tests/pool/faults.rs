//! Failures: providers that refuse, limits, callbacks, concurrent threads, and pools that are dropped first.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use zeusm::pool::{Lookup, Options, Pool, Provider, lookup};
use zeusm::{Error, Result};

use crate::provider::{Addresses, Tracker};
use crate::scale::scaled;

const MIB: usize = 1 << 20;

fn pool(tracker: &Tracker) -> Pool<Addresses> {
    Pool::new(tracker.provider(), Options::default())
}

#[test]
fn free_memory_is_returned_before_an_allocation_fails() {
    let tracker = Tracker::with_capacity(16 * MIB);
    let pool = pool(&tracker);
    drop(pool.allocate(12 * MIB, 0).unwrap());
    drop(pool.allocate(64, 0).unwrap());
    assert!(tracker.bytes() > 12 * MIB);
    // Twice as much as would fit beside the cached memory.
    let large = pool.allocate(16 * MIB, 0).unwrap();
    assert_eq!(tracker.bytes(), 16 * MIB);
    assert_eq!(pool.statistics().failures, 0);
    drop(large);
    // Even a small block needs the cached large one to be returned.
    drop(pool.allocate(64, 0).unwrap());
}

#[test]
fn a_slab_that_does_not_fit_becomes_a_single_block() {
    // A slab of the usual size would not fit.
    let tracker = Tracker::with_capacity(MIB);
    let pool = pool(&tracker);
    assert_eq!(pool.allocate(MIB, 0).unwrap().size(), MIB);
}

#[test]
fn a_failure_has_the_figures_and_the_cause() {
    let tracker = Tracker::with_capacity(4 * MIB);
    let pool = pool(&tracker);
    let live = pool.allocate(3 * MIB, 0).unwrap();
    let error = pool.allocate(2 * MIB, 0).unwrap_err();
    assert_eq!(
        error.result(),
        Some(zeusm::sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE)
    );
    let message = error.to_string();
    for part in [2 * MIB, 3 * MIB] {
        assert!(message.contains(&part.to_string()), "{message}");
    }
    assert!(message.contains("UNSUPPORTED_SIZE"), "{message}");
    let statistics = pool.statistics();
    assert_eq!((statistics.failures, statistics.allocations), (1, 1));
    assert_eq!(statistics.used_bytes, 3 * MIB);
    drop(live);
}

#[test]
fn a_limit_holds_and_can_be_below_what_is_in_use() {
    let tracker = Tracker::default();
    let pool = pool(&tracker);
    let live = pool.allocate(8 * MIB, 0).unwrap();
    drop(pool.allocate(32 * MIB, 0).unwrap());
    pool.set_limit(Some(4 * MIB));
    assert_eq!(
        tracker.bytes(),
        8 * MIB,
        "the free chunk had to be returned"
    );
    assert_eq!(pool.statistics().limit, Some(4 * MIB));
    let error = pool.allocate(64, 0).unwrap_err();
    assert!(matches!(&error, Error::Pool { cause, limit: Some(_), .. }
        if matches!(**cause, Error::PoolLimit { .. })));
    assert!(error.to_string().contains(&(4 * MIB).to_string()));
    drop(live);
    let small = pool.allocate(64, 0).unwrap();
    assert!(tracker.bytes() <= 4 * MIB);
    pool.set_limit(None);
    drop(pool.allocate(8 * MIB, 0).unwrap());
    drop(small);
}

#[test]
fn a_limit_includes_cached_memory() {
    let tracker = Tracker::default();
    let options = Options {
        limit: Some(10 * MIB),
        ..Options::default()
    };
    let pool = Pool::new(tracker.provider(), options);
    for size in 2..10 {
        drop(pool.allocate(size * MIB, 0).unwrap());
    }
    assert!(tracker.peak_bytes() <= 10 * MIB, "{}", tracker.peak_bytes());
}

#[test]
fn the_cache_has_a_cap_and_evicts_the_oldest() {
    let tracker = Tracker::default();
    let options = Options {
        largest_cache: 10 * MIB,
        ..Options::default()
    };
    let pool = Pool::new(tracker.provider(), options);
    let blocks: Vec<_> = (4..7).map(|size| pool.allocate(size * MIB, 0)).collect();
    drop(blocks);
    assert!(tracker.bytes() <= 10 * MIB);
    let calls = tracker.allocations();
    drop(pool.allocate(6 * MIB, 0).unwrap());
    assert_eq!(tracker.allocations(), calls, "the newest is still there");
    drop(pool.allocate(20 * MIB, 0).unwrap());
    assert_eq!(
        tracker.bytes(),
        6 * MIB,
        "a chunk over the cap is neither cached nor evicts others"
    );
}

#[test]
fn a_callback_can_free_memory() {
    let tracker = Tracker::with_capacity(8 * MIB);
    let pool = pool(&tracker);
    let hoard = Arc::new(Mutex::new(Some(pool.allocate(8 * MIB, 0).unwrap())));
    let seen = Arc::new(AtomicUsize::new(0));
    let (to_free, sizes) = (Arc::clone(&hoard), Arc::clone(&seen));
    pool.set_failure_callback(move |failure| {
        sizes.store(failure.size, Ordering::SeqCst);
        assert_eq!(failure.total_bytes, 8 * MIB);
        Ok(to_free.lock().take().is_some())
    });
    // The block that the callback frees is cached, and has to be returned before this fits.
    drop(pool.allocate(6 * MIB, 0).unwrap());
    assert_eq!(seen.load(Ordering::SeqCst), 6 * MIB);
    assert_eq!(pool.statistics().failures, 0);
    pool.clear_failure_callback();
}

#[test]
fn a_callback_is_called_until_the_memory_suffices() {
    let tracker = Tracker::with_capacity(8 * MIB);
    let pool = pool(&tracker);
    let parts: Vec<_> = (0..4).map(|_| pool.allocate(2 * MIB, 0).unwrap()).collect();
    let (hoard, calls) = (Mutex::new(parts), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    pool.set_failure_callback(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(hoard.lock().pop().is_some())
    });
    drop(pool.allocate(6 * MIB, 0).unwrap());
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    pool.clear_failure_callback();
}

#[test]
fn a_callback_is_called_again_if_another_thread_was_faster() {
    let tracker = Tracker::with_capacity(8 * MIB);
    let pool = pool(&tracker);
    let hoard = Mutex::new(vec![
        pool.allocate(4 * MIB, 0).unwrap(),
        pool.allocate(4 * MIB, 0).unwrap(),
    ]);
    let (other, stolen) = (pool.clone(), Arc::new(Mutex::new(None)));
    let thief = Arc::clone(&stolen);
    pool.set_failure_callback(move |_| {
        let freed = hoard.lock().pop().is_some();
        if thief.lock().is_none() {
            *thief.lock() = Some(other.allocate(4 * MIB, 0).unwrap());
        }
        Ok(freed)
    });
    pool.allocate(4 * MIB, 0).unwrap();
    assert!(stolen.lock().take().is_some());
    pool.clear_failure_callback();
}

#[test]
fn a_callback_that_cannot_help_leaves_the_providers_answer() {
    let tracker = Tracker::with_capacity(MIB);
    let pool = pool(&tracker);
    for (retry, most) in [(false, 1), (true, 16)] {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        pool.set_failure_callback(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(retry)
        });
        let error = pool.allocate(2 * MIB, 0).unwrap_err();
        assert!(error.result().is_some(), "{error}");
        assert_eq!(calls.load(Ordering::SeqCst), most);
    }
}

#[test]
fn bytes_that_are_in_use_at_some_calls_of_a_callback_only_are_no_progress() {
    let tracker = Tracker::with_capacity(MIB);
    let pool = pool(&tracker);
    let (other, held) = (pool.clone(), Mutex::new(None));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    // As another thread that allocates and frees.
    pool.set_failure_callback(move |_| {
        let freed = held.lock().take().is_some();
        if !freed {
            *held.lock() = Some(other.allocate(64, 0).unwrap());
        }
        Ok(counted.fetch_add(1, Ordering::SeqCst) < 100)
    });
    assert!(pool.allocate(2 * MIB, 0).is_err());
    assert_eq!(calls.load(Ordering::SeqCst), 16);
    pool.clear_failure_callback();
}

#[test]
fn a_callback_that_fails_fails_the_allocation() {
    let tracker = Tracker::with_capacity(MIB);
    let pool = pool(&tracker);
    pool.set_failure_callback(|_| Err(Error::Callback("the user's own words".into())));
    let error = pool.allocate(2 * MIB, 0).unwrap_err();
    assert!(error.to_string().contains("the user's own words"));
    assert_eq!(pool.statistics().failures, 1);
}

#[test]
fn a_callback_that_panics_leaves_the_pool_usable() {
    let tracker = Tracker::with_capacity(4 * MIB);
    let pool = pool(&tracker);
    pool.set_failure_callback(|_| panic!("the test's panic"));
    for _ in 0..2 {
        let panicked = catch_unwind(AssertUnwindSafe(|| pool.allocate(5 * MIB, 0)));
        assert!(panicked.is_err());
        let live = pool.allocate(2 * MIB, 0).unwrap();
        assert_eq!(pool.statistics().used_bytes, 2 * MIB);
        drop(live);
    }
    pool.free_all_blocks();
    assert_eq!(tracker.bytes(), 0);
}

#[test]
fn a_callback_may_allocate_and_is_not_called_recursively() {
    let tracker = Tracker::with_capacity(4 * MIB);
    let pool = pool(&tracker);
    let (inner, calls) = (pool.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    pool.set_failure_callback(move |_| {
        assert!(inner.allocate(64, 0).is_ok());
        assert!(inner.allocate(8 * MIB, 0).is_err());
        assert_eq!(inner.statistics().used_count, 0);
        Ok(counted.fetch_add(1, Ordering::SeqCst) == 0)
    });
    assert!(pool.allocate(5 * MIB, 0).is_err());
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    // The callback owns the pool: without this, the cycle would never be freed.
    pool.clear_failure_callback();
    assert!(pool.allocate(5 * MIB, 0).is_err());
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[test]
fn in_a_callback_the_callback_of_another_pool_is_called() {
    let (tracker, other) = (Tracker::with_capacity(MIB), Tracker::with_capacity(MIB));
    let (first, second) = (pool(&tracker), pool(&other));
    let calls = Arc::new(AtomicUsize::new(0));
    let (spill, back) = (second.clone(), first.clone());
    first.set_failure_callback(move |_| Ok(spill.allocate(2 * MIB, 0).is_ok()));
    let counted = Arc::clone(&calls);
    second.set_failure_callback(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        // The first pool's callback is being called already.
        Ok(back.allocate(2 * MIB, 0).is_ok())
    });
    assert!(first.allocate(2 * MIB, 0).is_err());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    // The callbacks own the pools.
    first.clear_failure_callback();
    second.clear_failure_callback();
}

#[test]
fn blocks_outlive_their_pool() {
    let tracker = Tracker::default();
    let pool = pool(&tracker);
    let blocks: Vec<_> = [64, 5000, 3 * MIB]
        .map(|size| pool.allocate(size, 0).unwrap())
        .into();
    drop(pool);
    for block in &blocks {
        assert!(tracker.covers(block.address().addr().get(), block.size()));
    }
    drop(blocks);
    assert_eq!(tracker.bytes(), 0, "the pool is freed with its last block");
}

#[test]
fn blocks_may_be_freed_on_another_thread() {
    let tracker = Tracker::default();
    let pool = pool(&tracker);
    for _ in 0..scaled(10, 3) {
        let sizes = (1..scaled(500, 60)).map(|n| n * 31);
        let blocks: Vec<_> = sizes.map(|size| pool.allocate(size, 0)).collect();
        std::thread::spawn(move || drop(blocks)).join().unwrap();
    }
    let statistics = pool.statistics();
    assert_eq!((statistics.used_count, statistics.used_bytes), (0, 0));
    pool.free_all_blocks();
    assert_eq!(tracker.bytes(), 0);
}

#[test]
fn lookup_tells_allocated_from_free_addresses() {
    let tracker = Tracker::default();
    let pool = pool(&tracker);
    for size in [10, 100, 5000, 3 * MIB] {
        let block = pool.allocate(size, 0).unwrap();
        let neighbour = pool.allocate(size, 0).unwrap();
        let start = block.address().addr().get();
        for offset in [0, 1, size - 1] {
            assert_eq!(
                lookup(start + offset),
                Lookup::Allocated(start..start + size)
            );
        }
        drop(block);
        assert_eq!(lookup(start), Lookup::Free);
        drop(neighbour);
        pool.free_all_blocks();
        assert_eq!(lookup(start), Lookup::NotPooled);
    }
    assert_eq!(lookup(8), Lookup::NotPooled);
    assert_eq!(lookup(usize::MAX), Lookup::NotPooled);
}

/// Blocks the first two calls until both are in progress.
struct Rendezvous {
    addresses: Addresses,
    both: Barrier,
    calls: AtomicUsize,
}

// SAFETY: the contract is that of `Addresses`.
unsafe impl Provider for Rendezvous {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        if self.calls.fetch_add(1, Ordering::SeqCst) < 2 {
            self.both.wait();
        }
        self.addresses.allocate(size, alignment)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        // SAFETY: the contract is the same.
        unsafe { self.addresses.free(address, size) };
    }
}

#[test]
fn threads_that_grow_a_class_at_once_leave_nothing_behind() {
    let tracker = Tracker::default();
    let provider = Rendezvous {
        addresses: tracker.provider(),
        both: Barrier::new(2),
        calls: AtomicUsize::new(0),
    };
    let pool = Pool::new(provider, Options::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| drop(pool.allocate(64, 0).unwrap()));
        }
    });
    assert_eq!(tracker.allocations(), 2);
    pool.free_all_blocks();
    assert_eq!(tracker.bytes(), 0);
}

/// Uses the whole API of its pool from another thread during each call.
struct Reentrant {
    addresses: Addresses,
    pool: Arc<Mutex<Option<Pool<Reentrant>>>>,
    /// Whether that thread is running: its own calls do not recurse.
    busy: AtomicBool,
    calls: Arc<AtomicUsize>,
}

impl Reentrant {
    fn use_the_pool(&self) {
        let Some(pool) = self.pool.lock().clone() else {
            return;
        };
        if self.busy.swap(true, Ordering::SeqCst) {
            return;
        }
        let (done, waiting) = mpsc::channel();
        std::thread::spawn(move || {
            drop(pool.allocate(100, 0));
            drop(pool.allocate(3 * MIB, 0));
            assert!(pool.allocate(1 << 51, 0).is_err());
            pool.trim(0);
            pool.reset_peak();
            done.send(lookup(pool.statistics().used_bytes)).unwrap();
        });
        let timeout = Duration::from_secs(60);
        waiting.recv_timeout(timeout).expect("a lock is held");
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.busy.store(false, Ordering::SeqCst);
    }
}

// SAFETY: the contract is that of `Addresses`.
unsafe impl Provider for Reentrant {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        self.use_the_pool();
        self.addresses.allocate(size, alignment)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        self.use_the_pool();
        // SAFETY: the contract is the same.
        unsafe { self.addresses.free(address, size) };
    }
}

#[test]
fn no_lock_is_held_while_the_provider_is_called() {
    let tracker = Tracker::default();
    let (cell, calls) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
    let provider = Reentrant {
        addresses: tracker.provider(),
        pool: Arc::clone(&cell),
        busy: AtomicBool::new(false),
        calls: Arc::clone(&calls),
    };
    let pool = Pool::new(provider, Options::default());
    // Without another attempt: each one waits for the call that is in progress.
    pool.set_failure_callback(|_| Ok(false));
    *cell.lock() = Some(pool.clone());
    let blocks = [64, 5000, 300_000, 3 * MIB].map(|size| pool.allocate(size, 0).unwrap());
    assert_eq!(calls.load(Ordering::SeqCst), 4);
    drop(blocks);
    pool.free_all_blocks();
    assert!(
        calls.load(Ordering::SeqCst) > 4,
        "frees call the provider, too"
    );
    assert_eq!(tracker.bytes(), 0);
    // The provider owns its pool: without this, the cycle would never be freed.
    cell.lock().take();
}
