//! Memory that another thread is moving, returning or requesting at the time at which an allocation lacks it.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use zeusm::pool::{Options, Pool, Provider};
use zeusm::{Error, Result, sys};

use crate::provider::{Addresses, SlowFree, Tracker};
use crate::random::Random;
use crate::scale::scaled;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

#[test]
fn an_allocation_waits_for_the_blocks_that_another_thread_trims() {
    for (limit, capacity) in [(Some(4 * MIB), 0), (None, 4 * MIB)] {
        let (provider, begins) = SlowFree::new(&Tracker::with_capacity(capacity));
        let options = Options {
            limit,
            largest_cache: 0,
            ..Options::default()
        };
        let pool = Pool::new(provider, options);
        drop([1024, 960, 896, 832].map(|size| pool.allocate(size * KIB, 0).unwrap()));
        thread::scope(|scope| {
            scope.spawn(|| pool.trim(0));
            begins.recv().unwrap();
            drop(pool.allocate(3900 * KIB, 0).unwrap());
        });
    }
}

/// Refuses large sizes. The first refusal comes after a function of the test.
struct Refusing(Addresses, Mutex<Option<Call>>);

type Call = Box<dyn FnOnce() + Send>;

// SAFETY: it is that of the other provider.
unsafe impl Provider for Refusing {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        if size < 8 * MIB {
            return self.0.allocate(size, alignment);
        }
        let call = self.1.lock().take();
        call.into_iter().for_each(|call| call());
        Err(Error::Call {
            function: "Refusing::allocate",
            result: sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE,
        })
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        // SAFETY: the caller guarantees what the function requires.
        unsafe { self.0.free(address, size) };
    }
}

#[test]
fn a_request_that_the_provider_refuses_does_not_count_against_the_limit() {
    let (began, begins) = channel();
    let call: Call = Box::new(move || {
        began.send(()).unwrap();
        thread::sleep(Duration::from_millis(100));
    });
    let provider = Refusing(Tracker::default().provider(), Mutex::new(Some(call)));
    let options = Options {
        limit: Some(10 * MIB),
        ..Options::default()
    };
    let pool = Pool::new(provider, options);
    thread::scope(|scope| {
        scope.spawn(|| pool.allocate(8 * MIB, 0).unwrap_err());
        begins.recv().unwrap();
        drop(pool.allocate(4 * MIB, 0).unwrap());
    });
}

#[test]
fn threads_that_need_few_blocks_leave_the_others_to_each_other() {
    let failures = AtomicUsize::new(0);
    for _ in 0..scaled(2000, 2) {
        let options = Options {
            limit: Some(64 * KIB),
            ..Options::default()
        };
        let pool = Pool::new(Tracker::default().provider(), options);
        let held: Vec<_> = (0..40).map(|_| pool.allocate(1000, 0).unwrap()).collect();
        let both = Barrier::new(2);
        let cycle = || {
            both.wait();
            for _ in 0..20 {
                let blocks = [(); 4].map(|()| pool.allocate(1000, 0));
                let failed = blocks.iter().filter(|block| block.is_err()).count();
                failures.fetch_add(failed, Ordering::Relaxed);
            }
        };
        thread::scope(|scope| [(); 2].map(|()| drop(scope.spawn(cycle))));
        drop(held);
    }
    assert_eq!(failures.into_inner(), 0);
}

/// Gives way to other threads in each call, as a driver may.
struct Yielding(Addresses);

// SAFETY: it is that of the other provider.
unsafe impl Provider for Yielding {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        thread::sleep(Duration::from_micros(1));
        self.0.allocate(size, alignment)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        thread::sleep(Duration::from_micros(1));
        // SAFETY: the caller guarantees what the function requires.
        unsafe { self.0.free(address, size) };
    }
}

/// Between a trim and the attempt after it, another thread may free a block, whose slab is then free but held, and allocate one of
/// another size.
#[test]
fn threads_that_need_no_more_than_the_limit_are_not_refused() {
    const THREADS: usize = 4;
    const LARGEST: usize = 2 * MIB;
    let options = Options {
        limit: Some(THREADS * LARGEST),
        ..Options::default()
    };
    let pool = Pool::new(Yielding(Tracker::default().provider()), options);
    let refused = AtomicUsize::new(0);
    let allocate = &|seed| {
        let mut random = Random(seed);
        for _ in 0..scaled(100_000, 20) {
            let sizes = [1, 4 * KIB, 64 * KIB, 100_000, MIB, LARGEST];
            let block = pool.allocate(sizes[random.below(sizes.len())], 0);
            refused.fetch_add(usize::from(block.is_err()), Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        for seed in 0..THREADS as u64 {
            scope.spawn(move || allocate(seed));
        }
    });
    assert_eq!(refused.into_inner(), 0);
}

fn limited(limit: usize) -> (Tracker, Pool<Addresses>) {
    let tracker = Tracker::default();
    let options = Options {
        limit: Some(limit),
        ..Options::default()
    };
    let pool = Pool::new(tracker.provider(), options);
    (tracker, pool)
}

#[test]
fn with_a_limit_no_block_has_a_larger_one() {
    let (tracker, pool) = limited(17 * MIB);
    drop(pool.allocate(9 * MIB, 0).unwrap());
    let blocks = [8, 9].map(|size| pool.allocate(size * MIB, 0).unwrap());
    assert_eq!(tracker.bytes(), 17 * MIB);
    drop(blocks);
}

#[test]
fn no_callback_is_called_for_a_size_above_the_limit() {
    let (_tracker, pool) = limited(8 * MIB);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    pool.set_failure_callback(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(true)
    });
    pool.allocate(9 * MIB, 0).unwrap_err();
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    let block = pool.allocate(8 * MIB, 0).unwrap();
    pool.allocate(8 * MIB, 0).unwrap_err();
    assert_eq!(calls.load(Ordering::SeqCst), 16);
    drop(block);
}

#[test]
fn what_another_thread_is_returning_is_not_trimmed_again() {
    let tracker = Tracker::default();
    let (provider, begins) = SlowFree::new(&tracker);
    let pool = Pool::new(provider, Options::default());
    drop([(); 3].map(|()| pool.allocate(20 * MIB, 0).unwrap()));
    thread::scope(|scope| {
        scope.spawn(|| pool.trim(40 * MIB));
        begins.recv().unwrap();
        pool.trim(40 * MIB);
    });
    assert_eq!(tracker.bytes(), 40 * MIB);
}
