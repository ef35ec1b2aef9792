//! How the pool scales: with threads, with live blocks, with mixed sizes. Prints a JSON record for each figure.
//!
//! `cargo bench --bench scale`; UMF and mimalloc are measured if `ZEUSM_UMF_LIBRARY` and `ZEUSM_MIMALLOC_LIBRARY` name their
//! libraries.
#![allow(clippy::unwrap_used, missing_docs)]

mod exchange;
mod live;
mod mimalloc;
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
    exchange::throughput(&pool(&provider), Umf::open(&provider).as_ref());
    live::growth([&pool(&provider), &pool(&provider)]);
    fragmentation(&provider);
}
