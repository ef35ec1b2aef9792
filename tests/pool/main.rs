//! The pool: over a provider that tracks allocations and fails on demand, over the heap, and over Level Zero.
#![allow(clippy::unwrap_used)]

mod blocks;
mod faults;
mod figures;
#[cfg(target_os = "linux")]
mod forks;
mod growth;
#[cfg(target_os = "linux")]
mod level_zero;
mod mixes;
mod policy;
mod provider;
mod random;
mod scale;
mod shortage;
mod stress;
#[cfg(target_os = "linux")]
mod suspend;
mod unshared;
