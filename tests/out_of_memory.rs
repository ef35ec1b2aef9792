//! Allocations for which memory is missing that is free in other pools. In a process of their own, as they empty all pools.
#![allow(clippy::unwrap_used)]

#[path = "pool/provider.rs"]
#[expect(dead_code, reason = "the tests of pools use the rest")]
mod provider;
#[path = "pool/random.rs"]
#[expect(dead_code, reason = "the tests of pools use the rest")]
mod random;

use std::thread;

use parking_lot::Mutex;
use zeusm::pool::{Options, Pool};

use provider::{Addresses, SlowFree, Tracker};

const MIB: usize = 1 << 20;

/// One test at a time.
static SERIAL: Mutex<()> = Mutex::new(());

/// Memory of 10 MiB, and two pools of it.
fn two_pools() -> (Tracker, [Pool<Addresses>; 2]) {
    let tracker = Tracker::with_capacity(10 * MIB);
    tracker.refuse_as_out_of_memory();
    let pools = [(); 2].map(|()| Pool::new(tracker.provider(), Options::default()));
    (tracker, pools)
}

#[test]
fn memory_that_is_free_in_another_pool_is_returned() {
    let _serial = SERIAL.lock();
    let (tracker, [first, second]) = two_pools();
    let small: Vec<_> = (0..8).map(|_| first.allocate(1 << 10, 0)).collect();
    drop(first.allocate(6 * MIB, 0).unwrap());
    drop(small);
    let block = second.allocate(9 * MIB, 0).unwrap();
    assert_eq!(first.statistics().total_bytes, 0);
    assert_eq!(tracker.bytes(), block.size());
    assert_eq!(second.statistics().failures, 0);
}

#[test]
fn blocks_in_use_stay() {
    let _serial = SERIAL.lock();
    let (tracker, [first, second]) = two_pools();
    let block = first.allocate(6 * MIB, 0).unwrap();
    let error = second.allocate(6 * MIB, 0).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert!(tracker.covers(block.address().addr().get(), block.size()));
}

#[test]
fn a_limit_empties_no_other_pool() {
    let _serial = SERIAL.lock();
    let (tracker, [first, second]) = two_pools();
    drop(first.allocate(6 * MIB, 0).unwrap());
    second.set_limit(Some(MIB));
    second.allocate(2 * MIB, 0).unwrap_err();
    assert_eq!(tracker.bytes(), 6 * MIB);
}

#[test]
fn a_callback_may_free_memory_of_another_pool() {
    let _serial = SERIAL.lock();
    let (_, [first, second]) = two_pools();
    let held = Mutex::new(first.allocate(6 * MIB, 0).ok());
    second.set_failure_callback(move |_| Ok(held.lock().take().is_some()));
    second.allocate(9 * MIB, 0).unwrap();
    assert_eq!(first.statistics().total_bytes, 0);
}

#[test]
fn a_dropped_pool_is_forgotten() {
    let _serial = SERIAL.lock();
    let (tracker, [first, second]) = two_pools();
    drop(first.allocate(6 * MIB, 0).unwrap());
    drop(first);
    assert_eq!(tracker.bytes(), 0);
    second.allocate(9 * MIB, 0).unwrap();
}

#[test]
fn memory_that_a_thread_is_returning_from_another_pool_is_waited_for() {
    let _serial = SERIAL.lock();
    let (tracker, [_, second]) = two_pools();
    let (provider, begins) = SlowFree::new(&tracker);
    let first = Pool::new(provider, Options::default());
    drop(first.allocate(10 * MIB, 0).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| first.trim(0));
        begins.recv().unwrap();
        drop(second.allocate(10 * MIB, 0).unwrap());
    });
}
