//! The time of one allocation and free: the pool, compared with the Level Zero calls below it and with UMF's pool.
//!
//! `cargo bench --bench pool`; UMF is measured if `ZEUSM_UMF_LIBRARY` names its library.
#![allow(clippy::unwrap_used, missing_docs)]

mod umf;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use zeusm::pool::{Options, Pool, Provider};
use zeusm::usm::LevelZeroProvider;
use zeusm::{Context, Runtime, UsmKind};

use self::umf::Umf;

const SIZES: [usize; 6] = [64, 1 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20];

fn pairs(criterion: &mut Criterion) {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let mut group = criterion.benchmark_group("allocate and free");
    for kind in [UsmKind::Shared, UsmKind::Device, UsmKind::Host] {
        let raw = LevelZeroProvider::new(&context, &device, kind);
        let pool = Pool::new(raw.clone(), Options::default());
        let umf = Umf::open(&raw);
        if umf.is_none() {
            println!("without UMF, as {} is not set", umf::VARIABLE);
        }
        for size in SIZES {
            let name = format!("{kind} {size}");
            group.bench_function(BenchmarkId::new("zeMem", &name), |bencher| {
                bencher.iter(|| {
                    let memory = raw.allocate(black_box(size), 0).unwrap();
                    // SAFETY: it has just been allocated with that size.
                    unsafe { raw.free(memory, size) };
                });
            });
            if let Some(umf) = &umf {
                group.bench_function(BenchmarkId::new("UMF", &name), |bencher| {
                    bencher.iter(|| drop(black_box(umf.allocate(black_box(size)))));
                });
            }
            group.bench_function(BenchmarkId::new("pool", &name), |bencher| {
                bencher.iter(|| drop(black_box(pool.allocate(black_box(size), 0).unwrap())));
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = pairs
}
criterion_main!(benches);
