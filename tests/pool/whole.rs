//! Providers whose allocations must not be shared: each block of the pool is one allocation.

use std::ffi::c_void;
use std::ptr::NonNull;

use zeusm::Result;
use zeusm::pool::{Options, Pool, Provider};

use crate::blocks::conformance;
use crate::provider::{Addresses, Ledger};

struct Whole(Addresses);

// SAFETY: the other provider's word.
unsafe impl Provider for Whole {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        self.0.allocate(size, alignment)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        // SAFETY: the caller's word.
        unsafe { self.0.free(address, size) };
    }

    fn shares_allocations(&self) -> bool {
        false
    }
}

#[test]
fn they_conform() {
    let ledger = Ledger::default();
    conformance(Whole(ledger.provider()));
    assert_eq!(ledger.bytes(), 0);
}

#[test]
fn each_block_is_an_allocation_of_its_own() {
    let ledger = Ledger::default();
    let pool = Pool::new(Whole(ledger.provider()), Options::default());
    let blocks: Vec<_> = (1..=100)
        .map(|index| pool.allocate(index * 40, 0).unwrap())
        .collect();
    assert_eq!(ledger.allocations(), blocks.len());
    for block in &blocks {
        assert!(ledger.begins_at(block.address().addr().get()));
    }
}

#[test]
fn freed_blocks_are_reused() {
    let ledger = Ledger::default();
    let pool = Pool::new(Whole(ledger.provider()), Options::default());
    for _ in 0..10 {
        let blocks: Vec<_> = (0..8).map(|_| pool.allocate(64, 0).unwrap()).collect();
        drop(blocks);
    }
    assert_eq!(ledger.allocations(), 8);
    assert_eq!(pool.free_all_blocks(), ledger.most());
}
