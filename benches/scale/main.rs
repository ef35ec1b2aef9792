//! How the pool scales: with threads, with live blocks, with mixed sizes. Prints a JSON record for each figure.
//!
//! `cargo bench --bench scale`; UMF is measured if `ZEUSM_UMF_LIBRARY` names its library.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../../tests/pool/mixes.rs"]
mod mixes;
#[path = "../../tests/pool/random.rs"]
mod random;
#[path = "../../tests/pool/scale.rs"]
mod scale;
mod threads;
mod tracked;
#[path = "../pool/umf.rs"]
mod umf;

use std::hint::black_box;
use std::time::Instant;

use zeusm::pool::{Options, Pool};
use zeusm::usm::LevelZeroProvider;
use zeusm::{Context, Runtime, UsmKind};

use self::tracked::Tracked;
use self::umf::Umf;

/// Prints one figure: each peer's value of `name` in `group`.
fn report(group: &str, name: &str, unit: &str, values: &[(&str, f64)]) {
    let values: Vec<_> = values
        .iter()
        .map(|(peer, value)| format!("{peer:?}: {value}"))
        .collect();
    let values = values.join(", ");
    println!(
        r#"{{"group": {group:?}, "name": {name:?}, "unit": {unit:?}, "values": {{{values}}}}}"#
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn pool(provider: &LevelZeroProvider) -> Pool<LevelZeroProvider> {
    Pool::new(provider.clone(), Options::default())
}

/// The time of an allocation beside a million live blocks, divided by its time beside a thousand.
fn growth(provider: &LevelZeroProvider) {
    let (small, large) = (pool(provider), pool(provider));
    let live = |pool: &Pool<_>, count| (0..count).map(|_| pool.allocate(64, 0)).collect();
    let few: Vec<_> = live(&small, 1000);
    let many: Vec<_> = live(&large, 1_000_000);
    // More blocks at a time than a shard's magazine holds.
    let time = |pool: &Pool<_>| {
        let begin = Instant::now();
        for _ in 0..100 {
            let blocks: [_; 100] = std::array::from_fn(|_| pool.allocate(64, 0));
            drop(black_box(blocks));
        }
        begin.elapsed().as_secs_f64()
    };
    let ratio = |_| time(&large) / time(&small);
    let ratio = median((0..200).map(ratio).collect());
    report(
        "growth",
        "10^6 live blocks beside 10^3",
        "×",
        &[("zeusm", ratio)],
    );
    drop((few, many));
}

/// The peak of the bytes that a pool holds while it replays a mix, divided by the peak of the bytes in use.
fn fragmentation(provider: &LevelZeroProvider) {
    for (name, mix) in mixes::all() {
        let tracked = Tracked::new(provider.clone());
        let peak_bytes = tracked.peak_bytes();
        mix.play(&Pool::new(tracked, Options::default()));
        let ratio = peak_bytes() as f64 / mix.peak as f64;
        report("fragmentation", name, "×", &[("zeusm", ratio)]);
    }
}

fn main() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let provider = LevelZeroProvider::new(&context, &device, UsmKind::Shared);
    threads::throughput(&pool(&provider), Umf::open(&provider).as_ref());
    growth(&provider);
    fragmentation(&provider);
}
