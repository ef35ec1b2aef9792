//! Operations beside a million live blocks, and beside a thousand.

use std::hint::black_box;
use std::time::Instant;

use zeusm::pool::{Block, Pool, lookup};
use zeusm::usm::LevelZeroProvider;

use crate::{median, report};

type Own = Pool<LevelZeroProvider>;
type Live = Vec<Block<LevelZeroProvider>>;
type Operation = (&'static str, fn(&Own, &Live));

const ROUNDS: usize = 200;

fn seconds(repeat: usize, operation: impl Fn()) -> f64 {
    let begin = Instant::now();
    for _ in 0..repeat {
        operation();
    }
    begin.elapsed().as_secs_f64()
}

/// More blocks at a time than a shard's magazine holds.
fn allocate(pool: &Own, _: &Live) {
    let blocks: [_; 100] = std::array::from_fn(|_| pool.allocate(64, 0));
    drop(black_box(blocks));
}

/// The same few blocks each time: what a table of a million blocks adds, without the processor's cache misses for its parts.
fn look_up(_: &Own, live: &Live) {
    for block in &live[..100] {
        black_box(lookup(black_box(block.address().addr().get())));
    }
}

fn statistics(pool: &Own, _: &Live) {
    for _ in 0..100 {
        black_box(pool.statistics());
    }
}

/// The time of each operation beside a million live blocks, divided by its time beside a thousand, measured in turn.
pub fn growth([small, large]: [&Own; 2]) {
    let live =
        |pool: &Own, count| -> Live { (0..count).map(|_| pool.allocate(64, 0).unwrap()).collect() };
    let (few, many) = (live(small, 1000), live(large, 1_000_000));
    let operations: [Operation; 3] = [
        ("allocate", allocate),
        ("look an address up", look_up),
        ("statistics", statistics),
    ];
    for (name, operation) in operations {
        let ratio = |_| {
            let with_many = seconds(20, || operation(large, &many));
            with_many / seconds(20, || operation(small, &few))
        };
        let ratio = median((0..ROUNDS).map(ratio).collect());
        report(
            "growth",
            &format!("{name}: 10^6 live blocks beside 10^3"),
            "×",
            &[("zeusm", ratio)],
        );
    }
}
