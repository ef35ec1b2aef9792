//! The pool: over a provider that tracks allocations and fails on demand, over the heap, and over Level Zero.
#![allow(clippy::unwrap_used)]

mod blocks;
mod faults;
mod figures;
mod growth;
mod level_zero;
mod mixes;
mod policy;
mod provider;
mod random;
mod stress;
mod unshared;

/// A size of a test: `usual`, and a smaller one under Miri, which is about ten thousand times slower.
const fn scaled(usual: usize, under_miri: usize) -> usize {
    if cfg!(miri) { under_miri } else { usual }
}
