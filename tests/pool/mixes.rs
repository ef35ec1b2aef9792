//! Generated sequences of a million allocations and their frees, to replay on a pool.

use zeusm::pool::{Pool, Provider};

use crate::random::Random;
use crate::scale::scaled;

/// The least number of allocations in a mix.
pub const SIZES: usize = scaled(1_000_000, 100);
const MIB: usize = 1 << 20;

/// A step of a mix. A slot holds one block at a time.
enum Step {
    Allocate { slot: usize, size: usize },
    Free { slot: usize },
}

/// The allocations and frees of a program.
#[derive(Default)]
pub struct Mix {
    steps: Vec<Step>,
    /// The number of allocations.
    pub sizes: usize,
    /// The bytes in use after the last step, and their peak.
    in_use: usize,
    pub peak: usize,
    /// The size of each slot's block, 0 for none, and the slots without a block.
    slots: Vec<usize>,
    empty: Vec<usize>,
}

impl Mix {
    fn allocate(&mut self, size: usize) -> usize {
        let slot = self.empty.pop().unwrap_or_else(|| {
            self.slots.push(0);
            self.slots.len() - 1
        });
        self.slots[slot] = size;
        self.steps.push(Step::Allocate { slot, size });
        self.sizes += 1;
        self.in_use += size;
        self.peak = self.peak.max(self.in_use);
        slot
    }

    /// Returns the block's size.
    fn free(&mut self, slot: usize) -> usize {
        let size = std::mem::take(&mut self.slots[slot]);
        self.steps.push(Step::Free { slot });
        self.empty.push(slot);
        self.in_use -= size;
        size
    }

    /// Replays the mix on a pool.
    pub fn play<P: Provider>(&self, pool: &Pool<P>) {
        let mut slots: Vec<_> = self.slots.iter().map(|_| None).collect();
        for step in &self.steps {
            match *step {
                Step::Allocate { slot, size } => {
                    slots[slot] = Some(pool.allocate(size, 0).unwrap());
                }
                Step::Free { slot } => slots[slot] = None,
            }
        }
    }
}

/// All mixes, by name.
pub fn all() -> [(&'static str, Mix); 3] {
    [
        ("uniform", uniform()),
        ("power law", power_law()),
        ("training loop", training_loop()),
    ]
}

/// Holds `count` blocks at a time, and replaces a random one by one of the next size.
fn replace(count: usize, size: impl Fn(&mut Random) -> usize) -> Mix {
    let mut mix = Mix::default();
    let mut random = Random(7);
    let mut live = Vec::new();
    for _ in 0..SIZES {
        if live.len() == count {
            mix.free(live.swap_remove(random.below(count)));
        }
        live.push(mix.allocate(size(&mut random)));
    }
    mix
}

fn uniform() -> Mix {
    replace(2000, |random| 1 + random.below(MIB))
}

fn power_law() -> Mix {
    replace(20_000, |random| random.power_law(64, 64 * MIB))
}

/// The forward pass keeps the layers' results, the backward pass frees them; the batches differ in length.
fn training_loop() -> Mix {
    const LAYERS: usize = scaled(24, 2);
    const WIDTH: usize = 1024;
    let mut mix = Mix::default();
    let mut random = Random(11);
    for part in 0..LAYERS * 4 {
        mix.allocate(WIDTH * WIDTH * 4 * if part % 4 == 3 { 4 } else { 1 });
    }
    while mix.sizes < SIZES {
        let tokens = 256 * (1 + random.below(16));
        let mut kept = Vec::new();
        for _ in 0..LAYERS {
            for factor in [1, 3, 1, 4] {
                let temporary = mix.allocate(tokens * WIDTH * 2);
                kept.push(mix.allocate(tokens * WIDTH * 2 * factor));
                kept.push(mix.allocate(tokens * 4));
                mix.free(temporary);
            }
        }
        while let Some(result) = kept.pop() {
            let gradient = mix.allocate(mix.slots[result]);
            mix.free(result);
            let update = mix.allocate(64 + random.below(4096));
            mix.free(gradient);
            mix.free(update);
        }
    }
    mix
}
