//! A deterministic simulation of the engine: seeded random programs on a fake native runtime, without threads.
//!
//! One thread takes random steps: the next call of one of several virtual host threads, a job of the workers, or a step
//! of the native runtime, which starts and ends commands and calls back at random. The log is compared with a reference
//! that is independent of the engine's implementation.
//!
//! `ZEUSM_SIMULATIONS=1000000 cargo test --release -p zeusm-cpu --lib simulation` runs as many programs of each kind;
//! `ZEUSM_SIMULATION=N` only the one with that number, which a failure names.

#![allow(clippy::unwrap_used)]

mod entries;
mod help;
mod lost;
mod programs;
mod resets;
mod threads;
mod turns;
mod world;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs `program` for one seed after another.
fn simulate(program: impl Fn(&mut Random)) {
    let number = |name| {
        env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let seeds = match number("ZEUSM_SIMULATION") {
        Some(one) => one..one + 1,
        None => 0..number("ZEUSM_SIMULATIONS").unwrap_or(3000),
    };
    for seed in seeds {
        let outcome = catch_unwind(AssertUnwindSafe(|| program(&mut Random::new(seed))));
        if let Err(panic) = outcome {
            eprintln!("this was ZEUSM_SIMULATION={seed}");
            resume_unwind(panic);
        }
    }
}

/// Random numbers from a seed (SplitMix64).
pub struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True in so many of a hundred cases.
    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
