//! The pool against the Level Zero calls below it: one allocation and free, alone and on two threads at once.
//!
//! `cargo bench --bench pool`. Throughput is in pairs of allocation and free, of all threads together.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use zeusm::pool::{LevelZero, Options, Pool, Provider};
use zeusm::{Context, Runtime, UsmKind};

const SIZES: [usize; 6] = [64, 1 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20];

fn provider(kind: UsmKind) -> LevelZero {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    LevelZero::new(&context, &device, kind)
}

fn pairs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("allocate and free");
    for kind in [UsmKind::Shared, UsmKind::Device, UsmKind::Host] {
        let raw = provider(kind);
        let pool = Pool::new(raw.clone(), Options::default());
        for size in SIZES {
            let name = format!("{kind} {size}");
            group.bench_function(BenchmarkId::new("zeMem", &name), |bencher| {
                bencher.iter(|| {
                    let memory = raw.allocate(black_box(size), 0).unwrap();
                    // SAFETY: it was just allocated so.
                    unsafe { raw.free(memory, size) };
                });
            });
            group.bench_function(BenchmarkId::new("pool", &name), |bencher| {
                bencher.iter(|| drop(black_box(pool.allocate(black_box(size), 0).unwrap())));
            });
        }
    }
}

fn threads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("threads");
    let pool = Pool::new(provider(UsmKind::Shared), Options::default());
    for size in [64, 64 << 10, 1 << 20] {
        for threads in [1, 2] {
            group.throughput(Throughput::Elements(threads));
            let name = BenchmarkId::new(size.to_string(), threads);
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|count| together(&pool, size, threads as usize, count));
            });
        }
    }
}

/// The time in which each of `threads` does `count` pairs at once.
fn together(pool: &Pool<LevelZero>, size: usize, threads: usize, count: u64) -> Duration {
    let start = Barrier::new(threads);
    std::thread::scope(|scope| {
        let work = || {
            start.wait();
            let begin = Instant::now();
            for _ in 0..count {
                drop(black_box(pool.allocate(black_box(size), 0).unwrap()));
            }
            begin.elapsed()
        };
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let times = handles.into_iter().map(|handle| handle.join().unwrap());
        times.max().unwrap_or_default()
    })
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = pairs, threads
}
criterion_main!(benches);
