//! When the pool keeps, reuses and gives back large chunks, and what it counts across threads: the arithmetic of it.

use std::sync::Barrier;
use std::thread;

use zeusm::pool::{Growth, Options, Pool};

use crate::provider::{Addresses, Ledger};

const MIB: usize = 1 << 20;

fn pool(options: Options) -> (Ledger, Pool<Addresses>) {
    let ledger = Ledger::default();
    let pool = Pool::new(ledger.provider(), options);
    (ledger, pool)
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
fn a_chunk_beyond_the_cache_goes_back_and_leaves_the_books_right() {
    let (ledger, pool) = pool(Options {
        largest_cache: 4 * MIB,
        ..Options::default()
    });
    let large = pool.allocate(8 * MIB, 0).unwrap();
    let small = pool.allocate(3 * MIB, 0).unwrap();
    drop(large);
    assert_eq!(ledger.bytes(), 3 * MIB);
    drop(small);
    drop(pool.allocate(3 * MIB, 0).unwrap());
    assert_eq!(ledger.allocations(), 2, "what is kept serves again");
}

#[test]
fn what_went_back_is_no_longer_in_service() {
    let (ledger, pool) = pool(Options {
        largest_cache: 4 * MIB,
        growth: Growth {
            overhead_percent: 0,
            unchecked: 0,
            ..Growth::default()
        },
        ..Options::default()
    });
    for _ in 0..3 {
        drop(pool.allocate(8 * MIB, 0).unwrap());
    }
    drop(pool.allocate(3 * MIB, 0).unwrap());
    assert_eq!(ledger.bytes(), 3 * MIB);
    // Both would be more than there ever was in service.
    let block = pool.allocate(6 * MIB, 0).unwrap();
    assert_eq!(ledger.bytes(), 6 * MIB);
    drop(block);
}

#[test]
fn a_chunk_that_is_too_large_serves_only_where_no_more_may_be_held() {
    for (limit, allocations) in [(None, 2), (Some(6 * MIB), 1)] {
        let (ledger, pool) = pool(Options {
            limit,
            ..Options::default()
        });
        drop(pool.allocate(5 * MIB, 0).unwrap());
        let block = pool.allocate(3 * MIB, 0).unwrap();
        assert_eq!(ledger.allocations(), allocations, "a limit of {limit:?}");
        drop(block);
    }
}

#[test]
fn what_lies_near_the_shards_counts_against_the_cache() {
    let largest_cache = 1 << 30;
    let (ledger, pool) = pool(Options {
        largest_cache,
        ..Options::default()
    });
    let blocks: Vec<_> = (0..500)
        .map(|_| pool.allocate(3 * MIB, 0).unwrap())
        .collect();
    assert_eq!(ledger.bytes(), 1500 * MIB);
    drop(blocks);
    assert!(
        ledger.bytes() <= largest_cache,
        "{} bytes are kept",
        ledger.bytes()
    );
    assert!(
        ledger.bytes() >= largest_cache / 2,
        "{} bytes are kept",
        ledger.bytes()
    );
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
fn a_chunk_that_the_cache_cannot_hold_displaces_nothing() {
    // A quarter of the cache is for what lies near the shards, in pieces of 2 MiB at most.
    let options = Options {
        largest_cache: 16 * MIB,
        ..Options::default()
    };
    for (size, kept) in [(14 * MIB, 3 * MIB), (12 * MIB, 12 * MIB)] {
        let (ledger, pool) = pool(options);
        let large = pool.allocate(size, 0).unwrap();
        drop(pool.allocate(3 * MIB, 0).unwrap());
        drop(large);
        assert_eq!(ledger.bytes(), kept, "of {size} bytes that came last");
    }
}

#[test]
fn overhead_is_a_share_of_the_most_in_service() {
    for (overhead_percent, held) in [(50, 8 * MIB), (100, 14 * MIB)] {
        let (ledger, pool) = pool(Options {
            growth: Growth {
                overhead_percent,
                unchecked: 0,
                ..Growth::default()
            },
            ..Options::default()
        });
        drop(pool.allocate(8 * MIB, 0).unwrap());
        // With 14 MiB, three quarters more than ever were in service would be held.
        let block = pool.allocate(6 * MIB, 0).unwrap();
        assert_eq!(ledger.bytes(), held, "with {overhead_percent} percent");
        drop(block);
    }
}

#[test]
fn no_more_goes_back_than_makes_room() {
    let (ledger, pool) = pool(Options {
        growth: Growth {
            overhead_percent: 0,
            unchecked: 0,
            ..Growth::default()
        },
        ..Options::default()
    });
    let blocks = [(); 3].map(|()| pool.allocate(2 * MIB, 0).unwrap());
    drop(blocks);
    let block = pool.allocate(4 * MIB, 0).unwrap();
    assert_eq!((ledger.bytes(), ledger.frees()), (6 * MIB, 2));
    drop(block);
}

#[test]
fn a_chunk_an_eighth_larger_serves_from_another_threads_shard() {
    let (ledger, pool) = pool(Options::default());
    // Threads get their shards by turns: these two have different ones.
    for size in [5 * MIB + MIB / 2, 5 * MIB] {
        thread::scope(|scope| scope.spawn(|| drop(pool.allocate(size, 0).unwrap())).join())
            .unwrap();
    }
    assert_eq!(ledger.allocations(), 1);
}

#[test]
fn a_shard_takes_and_gives_up_half_of_the_blocks_that_it_may_keep() {
    for (size, may_keep) in [(64, 64), (1 << 10, 64), (4 << 10, 16), (48 << 10, 1)] {
        let (_ledger, pool) = pool(Options::default());
        let ready = || std::iter::from_fn(|| pool.allocate_kept(size, 0));
        let half = usize::div_ceil(may_keep, 2);
        let mut blocks = vec![pool.allocate(size, 0).unwrap()];
        blocks.extend(ready());
        assert_eq!(blocks.len(), half, "blocks of {size} bytes");
        while blocks.len() <= may_keep {
            blocks.push(pool.allocate(size, 0).unwrap());
            blocks.extend(ready());
        }
        blocks.truncate(may_keep + 1);
        pool.free_all_blocks();
        drop(blocks);
        let kept: Vec<_> = ready().collect();
        assert_eq!(kept.len(), half, "blocks of {size} bytes");
    }
}

#[test]
fn no_more_is_trimmed_than_it_takes() {
    let (ledger, pool) = pool(Options::default());
    drop([(); 3].map(|()| pool.allocate(20 * MIB, 0).unwrap()));
    assert_eq!(pool.trim(40 * MIB), 20 * MIB);
    assert_eq!(ledger.bytes(), 40 * MIB);
}
