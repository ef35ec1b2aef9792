//! The pool's policy for large chunks (caching, reuse, return to the provider), and its statistics across threads.

use std::sync::Barrier;
use std::thread;

use zeusm::pool::{Growth, Options, Pool};

use crate::provider::{Addresses, SlowFree, Tracker};
use crate::scale::scaled;

const MIB: usize = 1 << 20;

fn pool(options: Options) -> (Tracker, Pool<Addresses>) {
    let tracker = Tracker::default();
    let pool = Pool::new(tracker.provider(), options);
    (tracker, pool)
}

#[test]
fn options_are_those_given() {
    let options = Options {
        limit: Some(77 * MIB),
        largest_cache: 5 * MIB,
        ..Options::default()
    };
    assert_eq!(*pool(options).1.options(), options);
}

#[test]
fn a_chunk_over_the_cap_is_returned_and_leaves_the_accounting_right() {
    let (tracker, pool) = pool(Options {
        largest_cache: 4 * MIB,
        ..Options::default()
    });
    let large = pool.allocate(8 * MIB, 0).unwrap();
    let small = pool.allocate(3 * MIB, 0).unwrap();
    drop(large);
    assert_eq!(tracker.bytes(), 3 * MIB);
    drop(small);
    drop(pool.allocate(3 * MIB, 0).unwrap());
    assert_eq!(tracker.allocations(), 2, "the cached chunk is reused");
}

#[test]
fn a_returned_chunk_is_no_longer_outstanding() {
    let (tracker, pool) = pool(Options {
        largest_cache: 4 * MIB,
        growth: Growth {
            overhead_percent: 0,
            overhead_threshold: 0,
            ..Growth::default()
        },
        ..Options::default()
    });
    for _ in 0..3 {
        drop(pool.allocate(8 * MIB, 0).unwrap());
    }
    drop(pool.allocate(3 * MIB, 0).unwrap());
    assert_eq!(tracker.bytes(), 3 * MIB);
    // Both chunks would be more than the peak of the outstanding bytes.
    let block = pool.allocate(6 * MIB, 0).unwrap();
    assert_eq!(tracker.bytes(), 6 * MIB);
    drop(block);
}

#[test]
fn a_much_larger_chunk_is_reused_when_the_pool_must_not_grow() {
    let strict = Growth {
        overhead_threshold: 0,
        ..Growth::default()
    };
    for (growth, allocations) in [(Growth::default(), 2), (strict, 1)] {
        let (tracker, pool) = pool(Options {
            growth,
            ..Options::default()
        });
        drop(pool.allocate(4 * MIB, 0).unwrap());
        let block = pool.allocate(3 * MIB, 0).unwrap();
        assert_eq!(tracker.allocations(), allocations);
        drop(block);
    }
}

/// The rest of a larger chunk counted as in use, and was missing for the next block.
#[test]
fn blocks_may_have_all_bytes_of_the_limit() {
    let (tracker, pool) = pool(Options {
        limit: Some(6 * MIB),
        ..Options::default()
    });
    drop(pool.allocate(6 * MIB, 0).unwrap());
    let blocks = [(); 2].map(|()| pool.allocate(3 * MIB, 0).unwrap());
    assert_eq!(tracker.bytes(), 6 * MIB);
    drop(blocks);
}

/// The limit or the provider refused a block, as another thread had evicted all that was cached and was still returning it.
#[test]
fn blocks_may_have_the_bytes_that_another_thread_returns_to_the_provider() {
    for (limit, capacity) in [(Some(12 * MIB), 0), (None, 12 * MIB)] {
        let tracker = Tracker::with_capacity(capacity);
        let options = Options {
            limit,
            ..Options::default()
        };
        let (provider, begins) = SlowFree::new(&tracker);
        let pool = Pool::new(provider, options);
        drop(pool.allocate(12 * MIB, 0).unwrap());
        let allocate = || pool.allocate(6 * MIB, 0).unwrap();
        thread::scope(|scope| {
            let other = scope.spawn(allocate);
            begins.recv().unwrap();
            let block = allocate();
            drop((block, other.join().unwrap()));
        });
        assert_eq!(tracker.peak_bytes(), 12 * MIB);
    }
}

#[test]
fn the_shard_cache_counts_against_the_cap() {
    let largest_cache = scaled(1 << 30, 32 << 20);
    let count = largest_cache / (2 * MIB);
    let (tracker, pool) = pool(Options {
        largest_cache,
        ..Options::default()
    });
    let blocks: Vec<_> = (0..count)
        .map(|_| pool.allocate(3 * MIB, 0).unwrap())
        .collect();
    assert_eq!(tracker.bytes(), count * 3 * MIB);
    drop(blocks);
    assert!(
        tracker.bytes() <= largest_cache,
        "{} bytes are kept",
        tracker.bytes()
    );
    assert!(
        tracker.bytes() >= largest_cache / 2,
        "{} bytes are kept",
        tracker.bytes()
    );
}

/// The slots of the shards reserve bytes of the cap.
#[test]
fn a_chunk_of_a_shard_makes_room_for_a_large_one() {
    let (tracker, pool) = pool(Options {
        largest_cache: 16 * MIB,
        ..Options::default()
    });
    let blocks = [8, 12, 7].map(|size| pool.allocate(size * MIB, 0).unwrap());
    for (block, held) in blocks.into_iter().zip([27, 19, 12]) {
        drop(block);
        assert!(tracker.bytes() <= held * MIB, "{} bytes", tracker.bytes());
    }
    drop(pool.allocate(7 * MIB, 0).unwrap());
    assert_eq!(tracker.allocations(), 3, "the newest is still there");
}

#[test]
fn peaks_are_those_of_all_threads_together() {
    let (_ledger, pool) = pool(Options::default());
    let threads = 4;
    let all_have_theirs = Barrier::new(threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let block = pool.allocate(10 * MIB, 0).unwrap();
                all_have_theirs.wait();
                drop(block);
            });
        }
    });
    let peak = pool.statistics().peak_bytes;
    let exact = threads * 10 * MIB;
    // Within 1 MiB for every thread after the first.
    assert!(
        (exact - (threads - 1) * MIB..=exact).contains(&peak),
        "a peak of {peak} bytes for {exact}"
    );
}

#[test]
fn a_chunk_over_the_cap_evicts_nothing_and_others_the_oldest() {
    let options = Options {
        largest_cache: 16 * MIB,
        ..Options::default()
    };
    for (size, kept) in [(17, 3), (16, 16), (13, 16)].map(|(size, kept)| (size * MIB, kept * MIB)) {
        let (tracker, pool) = pool(options);
        let large = pool.allocate(size, 0).unwrap();
        drop(pool.allocate(3 * MIB, 0).unwrap());
        drop(large);
        assert_eq!(tracker.bytes(), kept, "after {size} bytes were freed last");
    }
}

#[test]
fn the_allowed_overhead_is_a_share_of_the_peak() {
    for (overhead_percent, held) in [(50, 8 * MIB), (100, 14 * MIB)] {
        let (tracker, pool) = pool(Options {
            growth: Growth {
                overhead_percent,
                overhead_threshold: 0,
                ..Growth::default()
            },
            ..Options::default()
        });
        drop(pool.allocate(8 * MIB, 0).unwrap());
        // Holding 14 MiB would be an overhead of 75 % over the peak.
        let block = pool.allocate(6 * MIB, 0).unwrap();
        assert_eq!(tracker.bytes(), held, "with {overhead_percent} percent");
        drop(block);
    }
}

#[test]
fn no_more_chunks_are_returned_than_needed() {
    let (tracker, pool) = pool(Options {
        growth: Growth {
            overhead_percent: 0,
            overhead_threshold: 0,
            ..Growth::default()
        },
        ..Options::default()
    });
    let blocks = [(); 3].map(|()| pool.allocate(2 * MIB, 0).unwrap());
    drop(blocks);
    let block = pool.allocate(4 * MIB, 0).unwrap();
    assert_eq!((tracker.bytes(), tracker.frees()), (6 * MIB, 2));
    drop(block);
}

#[test]
fn a_chunk_that_is_an_eighth_larger_is_reused_from_another_shard() {
    let (tracker, pool) = pool(Options::default());
    // Threads are assigned to shards in turn: these two have different ones.
    for size in [5 * MIB + MIB / 2, 5 * MIB] {
        thread::scope(|scope| scope.spawn(|| drop(pool.allocate(size, 0).unwrap())).join())
            .unwrap();
    }
    assert_eq!(tracker.allocations(), 1);
}

#[test]
fn a_magazine_is_refilled_and_emptied_by_half_of_its_capacity() {
    for (size, capacity) in [(64, 64), (1 << 10, 64), (4 << 10, 16), (32 << 10, 2)] {
        let (_ledger, pool) = pool(Options::default());
        let cached = || std::iter::from_fn(|| pool.allocate_cached(size, 0));
        let half = usize::div_ceil(capacity, 2);
        let mut blocks = vec![pool.allocate(size, 0).unwrap()];
        blocks.extend(cached());
        assert_eq!(blocks.len(), half, "blocks of {size} bytes");
        while blocks.len() <= capacity {
            blocks.push(pool.allocate(size, 0).unwrap());
            blocks.extend(cached());
        }
        blocks.truncate(capacity + 1);
        pool.free_all_blocks();
        drop(blocks);
        let kept: Vec<_> = cached().collect();
        assert_eq!(kept.len(), half, "blocks of {size} bytes");
    }
}

#[test]
fn of_larger_blocks_a_shard_keeps_those_freed_last() {
    let (_ledger, pool) = pool(Options::default());
    let sizes = [64, 80, 96, 112, 128].map(|size| size << 10);
    drop(sizes.map(|size| pool.allocate(size, 0).unwrap()));
    let is_cached = |&size: &usize| pool.allocate_cached(size, 0).is_some();
    assert_eq!(
        sizes.iter().map(is_cached).collect::<Vec<_>>(),
        [false, true, true, true, true]
    );
}

/// Programs use blocks of many sizes, and each size class would keep its own.
#[test]
fn a_block_with_a_slab_of_its_own_is_memory_for_others_when_it_is_freed() {
    let (tracker, pool) = pool(Options {
        growth: Growth {
            overhead_threshold: 0,
            ..Growth::default()
        },
        ..Options::default()
    });
    for size in (512..1024).step_by(64) {
        drop(pool.allocate(size << 10, 0).unwrap());
    }
    assert!(tracker.bytes() <= 5 * MIB, "{} bytes", tracker.bytes());
}

#[test]
fn trim_returns_no_more_chunks_than_needed() {
    let (tracker, pool) = pool(Options::default());
    drop([(); 3].map(|()| pool.allocate(20 * MIB, 0).unwrap()));
    assert_eq!(pool.trim(40 * MIB), 20 * MIB);
    assert_eq!(tracker.bytes(), 40 * MIB);
}

#[test]
fn trim_to_the_bytes_that_are_held_keeps_cached_blocks() {
    let (tracker, pool) = pool(Options::default());
    drop(pool.allocate(64, 0).unwrap());
    let held = tracker.bytes();
    assert_eq!(pool.trim(held), 0);
    assert!(pool.allocate_cached(64, 0).is_some());
    assert_eq!(pool.trim(held - 1), held);
    assert!(pool.allocate_cached(64, 0).is_none());
}

#[test]
fn threads_do_not_all_share_a_shard() {
    let (_ledger, pool) = pool(Options::default());
    // The blocks of the same slab are cached for this thread's shard.
    let _block = pool.allocate(64, 0).unwrap();
    let is_cached = || pool.allocate_cached(64, 0).is_some();
    assert!(is_cached());
    let is_cached_elsewhere = |_| thread::scope(|scope| scope.spawn(is_cached).join()).unwrap();
    assert!(!(0..64).all(is_cached_elsewhere));
}

#[test]
fn a_block_as_large_as_the_limit_takes_the_place_of_free_memory() {
    let options = Options {
        limit: Some(4 * MIB),
        ..Options::default()
    };
    let pool = Pool::new(Tracker::default().provider(), options);
    drop(pool.allocate(3 * MIB, 0).unwrap());
    drop(pool.allocate(4 * MIB, 0).unwrap());
}
