//! Providers whose allocations must not be shared by blocks: each block of the pool is one allocation.

use std::ffi::c_void;
use std::ptr::NonNull;

use zeusm::Result;
use zeusm::pool::{Options, Pool, Provider};

use crate::blocks::conformance;
use crate::provider::{Addresses, Tracker};
use crate::scale::scaled;

struct Unshared(Addresses);

// SAFETY: the contract is that of the other provider.
unsafe impl Provider for Unshared {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        self.0.allocate(size, alignment)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        // SAFETY: the contract is the same.
        unsafe { self.0.free(address, size) };
    }

    fn shares_allocations(&self) -> bool {
        false
    }
}

#[test]
fn they_conform() {
    let tracker = Tracker::default();
    conformance(Unshared(tracker.provider()));
    assert_eq!(tracker.bytes(), 0);
}

#[test]
fn each_block_is_an_allocation_of_its_own() {
    let tracker = Tracker::default();
    let pool = Pool::new(Unshared(tracker.provider()), Options::default());
    let blocks: Vec<_> = (1..=scaled(100, 20))
        .map(|index| pool.allocate(index * 40, 0).unwrap())
        .collect();
    assert_eq!(tracker.allocations(), blocks.len());
    for block in &blocks {
        assert!(tracker.begins_at(block.address().addr().get()));
    }
}

#[test]
fn freed_blocks_are_reused() {
    let tracker = Tracker::default();
    let pool = Pool::new(Unshared(tracker.provider()), Options::default());
    for _ in 0..scaled(10, 3) {
        let blocks: Vec<_> = (0..8).map(|_| pool.allocate(64, 0).unwrap()).collect();
        drop(blocks);
    }
    assert_eq!(tracker.allocations(), 8);
    assert_eq!(pool.free_all_blocks(), tracker.peak_bytes());
}
