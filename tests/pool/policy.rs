//! When the pool keeps, reuses and gives back large chunks, and what it counts across threads: the arithmetic of it.

use std::sync::Barrier;
use std::thread;

use zeusm::pool::{Options, Pool};

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
