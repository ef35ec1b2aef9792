//! Sixteen threads that allocate blocks of mixed sizes and free each other's, beside two.

use parking_lot::Mutex;
use zeusm::pool::Pool;
use zeusm::usm::LevelZeroProvider;

use crate::mimalloc::Mimalloc;
use crate::random::Random;
use crate::threads::per_second;
use crate::umf::Umf;
use crate::{median, report};

const ROUNDS: usize = 9;
/// Blocks of all threads together in a round: enough for several time slices of the scheduler.
const BLOCKS: usize = 400_000;
/// Live blocks, in slots that all threads share.
const SLOTS: usize = 4096;
const LARGEST: usize = 1 << 20;

/// A slot on a cache line of its own.
#[repr(align(128))]
struct Slot<T>(Mutex<Option<T>>);

/// Blocks per second of all threads together. Each block replaces the one in a random slot, which its thread then frees.
fn exchange<T: Send>(threads: usize, allocate: &(dyn Fn(usize) -> T + Sync)) -> f64 {
    let slots: Vec<_> = (0..SLOTS).map(|_| Slot(Mutex::new(None))).collect();
    let work = |thread: usize| {
        let mut random = Random(thread as u64);
        for _ in 0..BLOCKS / threads {
            let new = allocate(random.power_law(64, LARGEST));
            let before = slots[random.below(SLOTS)].0.lock().replace(new);
            drop(before);
        }
    };
    (BLOCKS / threads * threads) as f64 * per_second(threads, &work)
}

/// The throughput of sixteen threads divided by that of two, and the time of a block with sixteen.
pub fn throughput(pool: &Pool<LevelZeroProvider>, umf: Option<&Umf>) {
    let mimalloc = Mimalloc::open();
    type Measure<'a> = Box<dyn Fn(usize) -> f64 + 'a>;
    let mut peers: Vec<(&str, Measure)> = vec![
        (
            "zeusm",
            Box::new(|threads| exchange(threads, &|size| pool.allocate(size, 0).unwrap())),
        ),
        ("limit", Box::new(|threads| exchange(threads, &|size| size))),
    ];
    if let Some(umf) = umf {
        let measure = |threads| exchange(threads, &|size| umf.allocate(size));
        peers.push(("UMF", Box::new(measure)));
    }
    if let Some(mimalloc) = &mimalloc {
        let measure = |threads| exchange(threads, &|size| mimalloc.allocate(size));
        peers.push(("mimalloc", Box::new(measure)));
    }
    let mut measured = vec![(Vec::new(), Vec::new()); peers.len()];
    for _ in 0..ROUNDS {
        for ((_, measure), (two, sixteen)) in peers.iter().zip(&mut measured) {
            two.push(measure(2));
            sixteen.push(measure(16));
        }
    }
    let (mut ratios, mut times) = (Vec::new(), Vec::new());
    for ((name, _), (two, sixteen)) in peers.iter().zip(measured) {
        let sixteen = median(sixteen);
        ratios.push((*name, sixteen / median(two)));
        times.push((*name, 1.0 / sixteen));
    }
    report(
        "sixteen threads",
        "mixed sizes, freed by others",
        "× two threads",
        &ratios,
    );
    report(
        "sixteen threads, a block",
        "mixed sizes, freed by others",
        "s",
        &times,
    );
}
