//! What may go wrong: providers that refuse, limits, callbacks, other threads, forks, and pools that go first.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock, mpsc};
use std::time::Duration;

use zeusm::pool::{Found, Options, Pool, Provider, find};
use zeusm::{Error, Result};

use crate::provider::{Addresses, Ledger};

const MIB: usize = 1 << 20;

fn pool(ledger: &Ledger) -> Pool<Addresses> {
    Pool::new(ledger.provider(), Options::default())
}

#[test]
fn unused_memory_is_given_back_before_an_allocation_fails() {
    let ledger = Ledger::with_capacity(16 * MIB);
    let pool = pool(&ledger);
    drop(pool.allocate(12 * MIB, 0).unwrap());
    drop(pool.allocate(64, 0).unwrap());
    assert!(ledger.bytes() > 12 * MIB);
    // Twice what would fit beside that.
    let large = pool.allocate(16 * MIB, 0).unwrap();
    assert_eq!(ledger.bytes(), 16 * MIB);
    assert_eq!(pool.statistics().failures, 0);
    drop(large);
    // Not even a small block has room without the unused large one going.
    drop(pool.allocate(64, 0).unwrap());
}

#[test]
fn the_last_bytes_serve_a_small_block() {
    // A whole slab of this class would not fit.
    let ledger = Ledger::with_capacity(MIB);
    let pool = pool(&ledger);
    assert_eq!(pool.allocate(MIB, 0).unwrap().size(), MIB);
}

#[test]
fn a_failure_has_the_figures_and_the_cause() {
    let ledger = Ledger::with_capacity(4 * MIB);
    let pool = pool(&ledger);
    let live = pool.allocate(3 * MIB, 0).unwrap();
    let error = pool.allocate(2 * MIB, 0).unwrap_err();
    assert_eq!(
        error.result(),
        Some(zeusm::sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)
    );
    let message = error.to_string();
    for part in [2 * MIB, 3 * MIB] {
        assert!(message.contains(&part.to_string()), "{message}");
    }
    assert!(message.contains("OUT_OF_DEVICE_MEMORY"), "{message}");
    let statistics = pool.statistics();
    assert_eq!((statistics.failures, statistics.allocations), (1, 1));
    assert_eq!(statistics.used_bytes, 3 * MIB);
    drop(live);
}

#[test]
fn a_limit_holds_and_can_be_below_what_is_in_use() {
    let ledger = Ledger::default();
    let pool = pool(&ledger);
    let live = pool.allocate(8 * MIB, 0).unwrap();
    drop(pool.allocate(32 * MIB, 0).unwrap());
    pool.set_limit(Some(4 * MIB));
    assert_eq!(ledger.bytes(), 8 * MIB, "the unused piece had to go");
    assert_eq!(pool.statistics().limit, Some(4 * MIB));
    let error = pool.allocate(64, 0).unwrap_err();
    assert!(matches!(&error, Error::Pool { cause, limit: Some(_), .. }
        if matches!(**cause, Error::PoolLimit { .. })));
    assert!(error.to_string().contains(&(4 * MIB).to_string()));
    drop(live);
    let small = pool.allocate(64, 0).unwrap();
    assert!(ledger.bytes() <= 4 * MIB);
    pool.set_limit(None);
    drop(pool.allocate(8 * MIB, 0).unwrap());
    drop(small);
}

#[test]
fn a_limit_counts_what_is_cached() {
    let ledger = Ledger::default();
    let options = Options {
        limit: Some(10 * MIB),
        ..Options::default()
    };
    let pool = Pool::new(ledger.provider(), options);
    for size in 2..10 {
        drop(pool.allocate(size * MIB, 0).unwrap());
    }
    assert!(ledger.most() <= 10 * MIB, "{}", ledger.most());
}

#[test]
fn the_cache_has_a_cap_and_the_oldest_goes() {
    let ledger = Ledger::default();
    let options = Options {
        largest_cache: 10 * MIB,
        ..Options::default()
    };
    let pool = Pool::new(ledger.provider(), options);
    let blocks: Vec<_> = (4..7).map(|size| pool.allocate(size * MIB, 0)).collect();
    drop(blocks);
    assert!(ledger.bytes() <= 10 * MIB);
    let calls = ledger.allocations();
    drop(pool.allocate(6 * MIB, 0).unwrap());
    assert_eq!(ledger.allocations(), calls, "the newest is still there");
    drop(pool.allocate(20 * MIB, 0).unwrap());
    assert_eq!(
        ledger.bytes(),
        6 * MIB,
        "too large to be kept, or to drive out what is"
    );
}

#[test]
fn a_callback_can_make_room() {
    let ledger = Ledger::with_capacity(8 * MIB);
    let pool = pool(&ledger);
    let hoard = Arc::new(parking_lot::Mutex::new(Some(
        pool.allocate(8 * MIB, 0).unwrap(),
    )));
    let seen = Arc::new(AtomicUsize::new(0));
    let (to_free, sizes) = (Arc::clone(&hoard), Arc::clone(&seen));
    pool.set_failure_callback(move |failure| {
        sizes.store(failure.size, Ordering::SeqCst);
        assert_eq!(failure.total_bytes, 8 * MIB);
        Ok(to_free.lock().take().is_some())
    });
    // What the callback freed is cached, and has to go before this fits.
    drop(pool.allocate(6 * MIB, 0).unwrap());
    assert_eq!(seen.load(Ordering::SeqCst), 6 * MIB);
    assert_eq!(pool.statistics().failures, 0);
    pool.clear_failure_callback();
}

#[test]
fn a_callback_that_cannot_help_leaves_the_providers_answer() {
    let ledger = Ledger::with_capacity(MIB);
    let pool = pool(&ledger);
    for promise in [false, true] {
        pool.set_failure_callback(move |_| Ok(promise));
        let error = pool.allocate(2 * MIB, 0).unwrap_err();
        assert!(error.result().is_some(), "{error}");
    }
}

#[test]
fn a_callback_that_fails_fails_the_allocation() {
    let ledger = Ledger::with_capacity(MIB);
    let pool = pool(&ledger);
    pool.set_failure_callback(|_| Err(Error::Callback("the user's own words".into())));
    let error = pool.allocate(2 * MIB, 0).unwrap_err();
    assert!(error.to_string().contains("the user's own words"));
    assert_eq!(pool.statistics().failures, 1);
}

#[test]
fn a_callback_that_panics_leaves_the_pool_whole() {
    let ledger = Ledger::with_capacity(4 * MIB);
    let pool = pool(&ledger);
    pool.set_failure_callback(|_| panic!("as the test wants"));
    for _ in 0..2 {
        let panicked = catch_unwind(AssertUnwindSafe(|| pool.allocate(5 * MIB, 0)));
        assert!(panicked.is_err());
        let live = pool.allocate(2 * MIB, 0).unwrap();
        assert_eq!(pool.statistics().used_bytes, 2 * MIB);
        drop(live);
    }
    pool.free_all_blocks();
    assert_eq!(ledger.bytes(), 0);
}

#[test]
fn a_callback_may_allocate_and_is_not_called_for_that() {
    let ledger = Ledger::with_capacity(4 * MIB);
    let pool = pool(&ledger);
    let (inner, calls) = (pool.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    pool.set_failure_callback(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        assert!(inner.allocate(64, 0).is_ok());
        assert!(inner.allocate(8 * MIB, 0).is_err());
        assert_eq!(inner.statistics().used_count, 0);
        Ok(true)
    });
    assert!(pool.allocate(5 * MIB, 0).is_err());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    // The pool is in its own callback; without this it would never go.
    pool.clear_failure_callback();
}

#[test]
fn blocks_outlive_their_pool() {
    let ledger = Ledger::default();
    let pool = pool(&ledger);
    let blocks: Vec<_> = [64, 5000, 3 * MIB]
        .map(|size| pool.allocate(size, 0).unwrap())
        .into();
    drop(pool);
    for block in &blocks {
        assert!(ledger.covers(block.address().addr().get(), block.size()));
    }
    drop(blocks);
    assert_eq!(ledger.bytes(), 0, "the last block takes the pool with it");
}

#[test]
fn blocks_may_be_freed_on_another_thread() {
    let ledger = Ledger::default();
    let pool = pool(&ledger);
    for _ in 0..10 {
        let blocks: Vec<_> = (1..500).map(|n| pool.allocate(n * 31, 0)).collect();
        std::thread::spawn(move || drop(blocks)).join().unwrap();
    }
    let statistics = pool.statistics();
    assert_eq!((statistics.used_count, statistics.used_bytes), (0, 0));
    pool.free_all_blocks();
    assert_eq!(ledger.bytes(), 0);
}

#[test]
fn addresses_are_known_to_be_used_or_not() {
    let ledger = Ledger::default();
    let pool = pool(&ledger);
    for size in [10, 100, 5000, 3 * MIB] {
        let block = pool.allocate(size, 0).unwrap();
        let neighbour = pool.allocate(size, 0).unwrap();
        let start = block.address().addr().get();
        for offset in [0, 1, size - 1] {
            assert_eq!(find(start + offset), Found::Used(start..start + size));
        }
        drop(block);
        assert_eq!(find(start), Found::Unused);
        drop(neighbour);
        pool.free_all_blocks();
        assert_eq!(find(start), Found::Elsewhere);
    }
    assert_eq!(find(8), Found::Elsewhere);
    assert_eq!(find(usize::MAX), Found::Elsewhere);
}

/// Answers the first two calls only when both are there.
struct Meeting {
    addresses: Addresses,
    both: Barrier,
    calls: AtomicUsize,
}

// SAFETY: as of what it is made of.
unsafe impl Provider for Meeting {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        if self.calls.fetch_add(1, Ordering::SeqCst) < 2 {
            self.both.wait();
        }
        self.addresses.allocate(size, alignment)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        // SAFETY: the caller's word.
        unsafe { self.addresses.free(address, size) };
    }
}

#[test]
fn threads_that_grow_a_class_at_once_leave_nothing_behind() {
    let ledger = Ledger::default();
    let provider = Meeting {
        addresses: ledger.provider(),
        both: Barrier::new(2),
        calls: AtomicUsize::new(0),
    };
    let pool = Pool::new(provider, Options::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| drop(pool.allocate(64, 0).unwrap()));
        }
    });
    assert_eq!(ledger.allocations(), 2);
    pool.free_all_blocks();
    assert_eq!(ledger.bytes(), 0);
}

/// Has another thread use all of its pool during each call.
struct Meddler {
    addresses: Addresses,
    pool: Arc<OnceLock<Pool<Meddler>>>,
    /// Whether that thread is at it: its own calls are let be.
    busy: AtomicBool,
    calls: Arc<AtomicUsize>,
}

impl Meddler {
    fn meddle(&self) {
        let Some(pool) = self.pool.get().cloned() else {
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
            done.send(find(pool.statistics().used_bytes)).unwrap();
        });
        let patience = Duration::from_secs(60);
        waiting.recv_timeout(patience).expect("a lock is held");
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.busy.store(false, Ordering::SeqCst);
    }
}

// SAFETY: as of what it is made of.
unsafe impl Provider for Meddler {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        self.meddle();
        self.addresses.allocate(size, alignment)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        self.meddle();
        // SAFETY: the caller's word.
        unsafe { self.addresses.free(address, size) };
    }
}

#[test]
fn no_lock_is_held_while_the_provider_is_called() {
    let ledger = Ledger::default();
    let (cell, calls) = (Arc::new(OnceLock::new()), Arc::new(AtomicUsize::new(0)));
    let provider = Meddler {
        addresses: ledger.provider(),
        pool: Arc::clone(&cell),
        busy: AtomicBool::new(false),
        calls: Arc::clone(&calls),
    };
    let pool = Pool::new(provider, Options::default());
    pool.set_failure_callback(|_| Ok(true));
    assert!(cell.set(pool.clone()).is_ok());
    let blocks = [64, 5000, 300_000, 3 * MIB].map(|size| pool.allocate(size, 0).unwrap());
    assert_eq!(calls.load(Ordering::SeqCst), 4);
    drop(blocks);
    pool.free_all_blocks();
    assert!(calls.load(Ordering::SeqCst) > 4, "frees were calls, too");
    assert_eq!(ledger.bytes(), 0);
}

/// Runs `check` in a child and tells whether it ended well.
fn in_child(check: impl FnOnce()) -> bool {
    // SAFETY: the child runs the closure and leaves, with no destructor of the parent's.
    match unsafe { libc::fork() } {
        0 => {
            let answer = catch_unwind(AssertUnwindSafe(check));
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(answer.is_err())) }
        }
        child => {
            assert!(child > 0);
            let mut status = 0;
            // SAFETY: the child is ours and not waited for yet.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            status == 0
        }
    }
}

#[test]
fn a_child_drops_what_it_inherits_and_has_the_pool_anew() {
    let ledger = Ledger::default();
    let pool = pool(&ledger);
    let kept = pool.allocate(1000, 0).unwrap();
    let mut inherited = Some(pool.allocate(1000, 0).unwrap());
    let large = pool.allocate(3 * MIB, 0).unwrap();
    let before = pool.statistics();
    // Threads that hold the pool's locks most of the time: the child may find any of them taken, for ever.
    let stop = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let (pool, stop) = (pool.clone(), Arc::clone(&stop));
            std::thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    drop(pool.allocate(1000, 0));
                    pool.trim(0);
                }
            })
        })
        .collect();
    for _ in 0..20 {
        let (inherited, pool, large) = (&mut inherited, &pool, &large);
        assert!(in_child(|| {
            let block = inherited.take().unwrap();
            let address = block.address().addr().get();
            assert_eq!(find(address), Found::Used(address..address + 1000));
            drop(block);
            assert_eq!(find(address), Found::Unused);
            let address = large.address().addr().get();
            assert_eq!(find(address), Found::Used(address..address + 3 * MIB));
            assert_eq!(pool.trim(0), 0);
            assert_eq!(pool.statistics().total_bytes, 0);
        }));
    }
    stop.store(true, Ordering::SeqCst);
    for thread in busy {
        thread.join().unwrap();
    }
    let after = pool.statistics();
    assert_eq!(after.used_bytes, before.used_bytes);
    // The provider's own lock is free now, so a child can use it.
    assert!(in_child(|| {
        let block = pool.allocate(100, 0).unwrap();
        assert_eq!(block.size(), 100);
        let address = block.address().addr().get();
        assert_eq!(find(address), Found::Used(address..address + 100));
        assert_eq!(pool.statistics().allocations, 1);
        let other = Pool::new(Ledger::default().provider(), Options::default());
        drop(other.allocate(100, 0).unwrap());
        assert_eq!(other.statistics().allocations, 1);
    }));
    assert_eq!(pool.statistics(), after);
    drop((kept, inherited, large));
    drop(pool);
    assert_eq!(ledger.bytes(), 0);
}
