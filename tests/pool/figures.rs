//! Statistics, peaks and scopes.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::Mutex;
use zeusm::Result;
use zeusm::pool::{self, Options, Pool, Provider};

use crate::provider::{Addresses, Tracker};

const MIB: usize = 1 << 20;

fn pool() -> Pool<Addresses> {
    Pool::new(Tracker::default().provider(), Options::default())
}

#[test]
fn a_new_pool_is_empty() {
    assert_eq!(pool().statistics(), Default::default());
}

#[test]
fn the_debug_output_has_options_and_figures() {
    let pool = pool();
    let _block = pool.allocate(100, 0).unwrap();
    let shown = format!("{pool:?}");
    let options = format!("{:?}", pool.options());
    let statistics = format!("{:?}", pool.statistics());
    assert!(
        shown.contains(&options) && shown.contains(&statistics),
        "{shown}"
    );
}

#[test]
fn hits_and_misses_are_counted() {
    let pool = pool();
    let first = pool.allocate(64, 0).unwrap();
    let second = pool.allocate(64, 0).unwrap();
    drop(pool.allocate(3 * MIB, 0).unwrap());
    drop(pool.allocate(3 * MIB, 0).unwrap());
    let statistics = pool.statistics();
    assert_eq!((statistics.misses, statistics.hits), (2, 2));
    assert_eq!(statistics.allocations, 4);
    assert_eq!(statistics.allocated_bytes, 128 + 6 * MIB as u64);
    assert_eq!(statistics.used_bytes, 128);
    drop((first, second));
}

#[test]
fn peaks_can_be_reset() {
    let pool = pool();
    let keep = pool.allocate(4 * MIB, 0).unwrap();
    drop(pool.allocate(8 * MIB, 0).unwrap());
    assert_eq!(pool.statistics().peak_bytes, 12 * MIB);
    assert_eq!(
        pool.statistics().peak_bytes,
        12 * MIB,
        "reading has no effect"
    );
    pool.reset_peak();
    assert_eq!(pool.statistics().peak_bytes, 4 * MIB);
    drop(keep);
    assert_eq!(pool.statistics().peak_bytes, 4 * MIB);
    pool.reset_peak();
    assert_eq!(pool.statistics().peak_bytes, 0);
}

/// Records its pool's bytes in use when memory is returned to it.
struct Recording {
    addresses: Addresses,
    pool: Arc<Mutex<Option<Pool<Recording>>>>,
    used_bytes: Arc<Mutex<Vec<usize>>>,
}

// SAFETY: the contract is that of `Addresses`.
unsafe impl Provider for Recording {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        self.addresses.allocate(size, alignment)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        let pool = self.pool.lock().clone();
        let used_bytes = pool.map(|pool| pool.statistics().used_bytes);
        self.used_bytes.lock().extend(used_bytes);
        // SAFETY: the contract is the same.
        unsafe { self.addresses.free(address, size) };
    }
}

#[test]
fn a_block_is_not_in_use_when_other_threads_can_have_its_memory() {
    let (cell, used_bytes) = (Arc::default(), Arc::default());
    let provider = Recording {
        addresses: Tracker::default().provider(),
        pool: Arc::clone(&cell),
        used_bytes: Arc::clone(&used_bytes),
    };
    let options = Options {
        largest_cache: 0,
        ..Options::default()
    };
    let pool = Pool::new(provider, options);
    *cell.lock() = Some(pool.clone());
    drop(pool.allocate(64 * MIB, 0).unwrap());
    // Of the blocks of a size class, a shard keeps four.
    drop([(); 5].map(|()| pool.allocate(MIB, 0).unwrap()));
    assert_eq!(*used_bytes.lock(), [0, 0]);
    // The provider owns its pool: without this, the cycle would never be freed.
    cell.lock().take();
}

#[test]
fn scopes_count_their_own_changes() {
    let pool = pool();
    let before = pool.allocate(2 * MIB, 0).unwrap();
    drop(pool.allocate(64 * MIB, 0).unwrap());
    // A hit before the scopes, which they do not count.
    drop(pool.allocate(64 * MIB, 0).unwrap());
    assert_eq!(pool.statistics().hits, 1);
    let outer = pool.scope();
    let kept = pool.allocate(64, 0).unwrap();
    let inner = pool.scope();
    drop(pool.allocate(2 * MIB, 0).unwrap());
    drop(before);
    let report = inner.report();
    assert_eq!((report.allocations, report.hits, report.misses), (1, 0, 1));
    assert_eq!(report.allocated_bytes, 2 * MIB as u64);
    assert_eq!(report.peak_bytes, 2 * MIB as i64);
    assert_eq!(report.used_bytes, -(2 * MIB as i64));
    assert_eq!(report.used_count, -1);
    drop(inner);
    drop(pool.allocate(MIB, 0).unwrap());
    drop(kept);
    let report = outer.report();
    assert_eq!(report.allocations, 3);
    assert_eq!(report.peak_bytes, 2 * MIB as i64 + 64);
    assert_eq!(report.used_count, -1);
    assert_eq!(report.failures, 0);
    assert_eq!(
        pool.statistics().peak_bytes,
        66 * MIB,
        "scopes do not change it"
    );
}

#[test]
fn trim_keeps_the_given_number_of_bytes() {
    let pool = pool();
    let blocks: Vec<_> = (0..4).map(|_| pool.allocate(4 * MIB, 0)).collect();
    drop(blocks);
    assert_eq!(pool.statistics().free_bytes, 16 * MIB);
    assert_eq!(pool.trim(10 * MIB), 8 * MIB);
    assert_eq!(pool.trim(10 * MIB), 0);
    assert_eq!(pool.free_all_blocks(), 8 * MIB);
}

#[test]
fn a_cached_block_is_allocated_without_the_provider() {
    let pool = pool();
    for (size, alignment) in [(1000, 0), (64, 4096), (MIB, 0)] {
        assert!(pool.allocate_cached(size, alignment).is_none());
        let address = pool.allocate(size, alignment).unwrap().address();
        let before = pool.statistics();
        let kept = pool.allocate_cached(size, alignment).unwrap();
        assert_eq!((kept.address(), kept.size()), (address, size));
        let statistics = pool.statistics();
        assert_eq!(statistics.hits, before.hits + 1);
        assert_eq!(statistics.used_count, 1);
    }
    assert!(pool.allocate_cached(1000, 3).is_none());
    drop(pool.allocate(3 * MIB, 0));
    assert!(
        pool.allocate_cached(3 * MIB, 0).is_none(),
        "large blocks are not in magazines"
    );
}

#[test]
fn the_peak_before_a_trim_is_exact_although_another_thread_frees_after_it() {
    let pool = pool();
    let blocks = [384, 96].map(|size| pool.allocate(size << 10, 0).unwrap());
    pool.free_all_blocks();
    std::thread::scope(|scope| scope.spawn(|| drop(blocks)).join()).unwrap();
    drop(pool.allocate(8 << 10, 0).unwrap());
    assert_eq!(pool.statistics().peak_bytes, 480 << 10);
}

#[test]
fn scopes_count_their_own_failures() {
    let options = Options {
        limit: Some(MIB),
        ..Options::default()
    };
    let pool = Pool::new(Tracker::default().provider(), options);
    let fails = || assert!(pool.allocate(2 * MIB, 0).is_err());
    fails();
    fails();
    let scope = pool.scope();
    fails();
    assert_eq!(scope.report().failures, 1);
}

#[test]
fn the_slabs_of_a_process_have_its_blocks() {
    let pool = pool();
    let blocks = [64, 64, 3 * MIB].map(|size| pool.allocate(size, 0).unwrap());
    let slabs = pool::slabs();
    let slab = |block: usize| {
        let address = blocks[block].address().addr().get();
        slabs.iter().find(|it| it.range.contains(&address)).unwrap()
    };
    let small = slab(0);
    assert_eq!((small.block_size, small.used_bytes), (64, 128));
    assert_eq!(small.blocks.len(), 2);
    assert_eq!(small.range, slab(1).range);
    assert_eq!(small.place, slab(2).place);
    assert_eq!((slab(2).block_size, slab(2).used_bytes), (0, 3 * MIB));
}
