//! The throughput of two threads that allocate and free, divided by that of one.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::yield_now;
use std::time::Instant;

use zeusm::pool::Pool;
use zeusm::usm::LevelZeroProvider;

use crate::umf::{LARGEST_POOLED, Umf};
use crate::{median, report};

const ROUNDS: usize = 15;
/// Pairs of allocation and free of each thread in a round: enough for several time slices of the scheduler.
const PAIRS: u32 = 200_000;

/// How often per second all threads complete `work`, from the first one's start to the last one's end. It is called with the
/// number of the thread, which is kept on one processor: the scheduler may leave two threads on one although another is idle.
pub fn per_second(threads: usize, work: &(dyn Fn(usize) + Sync)) -> f64 {
    let missing = AtomicUsize::new(threads);
    let run = |thread| {
        pin(thread);
        missing.fetch_sub(1, Ordering::SeqCst);
        while missing.load(Ordering::SeqCst) > 0 {
            yield_now();
        }
        let start = Instant::now();
        work(thread);
        (start, Instant::now())
    };
    let (first, last) = std::thread::scope(|scope| {
        let run = &run;
        let handles: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || run(thread)))
            .collect();
        let each = handles.into_iter().map(|handle| handle.join().unwrap());
        each.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap()
    });
    1.0 / (last - first).as_secs_f64()
}

/// Keeps this thread on one of the first two processors that the process may use.
#[cfg(target_os = "linux")]
fn pin(thread: usize) {
    const SIZE: usize = size_of::<libc::cpu_set_t>();
    // SAFETY: the sets are plain data of that size.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, SIZE, &mut allowed), 0);
        let processors = (0..8 * SIZE).filter(|&processor| libc::CPU_ISSET(processor, &allowed));
        let processors: Vec<_> = processors.take(2).collect();
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processors[thread % processors.len()], &mut one);
        assert_eq!(libc::sched_setaffinity(0, SIZE, &one), 0);
    }
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}

/// Pairs of allocation and free per second of all threads together.
fn pairs(threads: usize, pair: &(dyn Fn() + Sync)) -> f64 {
    let work = |_| (0..PAIRS).for_each(|_| pair());
    threads as f64 * f64::from(PAIRS) * per_second(threads, &work)
}

/// Each peer's throughput of two threads divided by that of one, measured in turn.
fn ratios(peers: &[(&str, &(dyn Fn() + Sync))]) -> Vec<f64> {
    let mut measured = vec![(Vec::new(), Vec::new()); peers.len()];
    for _ in 0..ROUNDS {
        for ((_, pair), (one, two)) in peers.iter().zip(&mut measured) {
            one.push(pairs(1, pair));
            two.push(pairs(2, pair));
        }
    }
    let ratio = |(one, two)| median(two) / median(one);
    measured.into_iter().map(ratio).collect()
}

/// Compares the pool with UMF's pool, and with threads that only count, which show the limit of the machine.
pub fn throughput(pool: &Pool<LevelZeroProvider>, umf: Option<&Umf>) {
    for (size, name, group) in [
        (64, "64 B", "two threads"),
        (4 << 10, "4 KiB", "two threads"),
        (64 << 10, "64 KiB", "two threads"),
        (1 << 20, "1 MiB", "two threads"),
        (4 << 20, "4 MiB", "two threads, large blocks"),
        (64 << 20, "64 MiB", "two threads, large blocks"),
    ] {
        let ours = || drop(black_box(pool.allocate(black_box(size), 0).unwrap()));
        let pooled = umf.filter(|_| size <= LARGEST_POOLED);
        let theirs = pooled.map(|umf| || drop(black_box(umf.allocate(black_box(size)))));
        let count = || {
            for number in 0..100 {
                black_box(number);
            }
        };
        let mut peers: Vec<(_, &(dyn Fn() + Sync))> = vec![("zeusm", &ours), ("limit", &count)];
        if let Some(theirs) = &theirs {
            peers.push(("UMF", theirs));
        }
        let names = peers.iter().map(|(name, _)| *name);
        let values: Vec<_> = names.zip(ratios(&peers)).collect();
        report(group, name, "× one thread", &values);
    }
}
