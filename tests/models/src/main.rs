//! Models of the synchronisation in zeusm and its CPU runtime. Each model runs a few threads in every interleaving, with every
//! value that the memory model allows them to read.
//!
//! The models include the source files of the crates, compiled with loom's types instead of the standard library's:
//! those of `zeusm_process` and of the engine's `primitives`. Small stubs replace
//! the other dependencies of a file.
//!
//! Timeouts are not modelled. The engine's helper thread is not modelled either: it never exits, which loom would report as a
//! deadlock. The pool's byte counters remain atomics of the standard library, because they only change under the pool's locks.

#![allow(dead_code, reason = "the models use a part of each file")]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use loom::model::Builder;

mod abi;
mod engine;
mod error;
mod fork_safe;
mod history;
mod local;
mod pins;
mod pool;
mod process;
mod system;

use error::Result;
/// The files name the crate `zeusm_process`, which is this one here.
extern crate self as zeusm_process;
pub(crate) use process::*;

/// A model: its name, the bound on preemptions per interleaving (`None` for no bound), and its function.
type Model = (&'static str, Option<usize>, fn());

const MODELS: &[&[Model]] = &[pins::MODELS, local::MODELS, engine::MODELS, pool::MODELS];

/// Runs the models whose names contain the first argument.
fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let chosen = MODELS.iter().copied().flatten();
    let mut any = false;
    for &(name, preemption_bound, model) in chosen.filter(|(name, ..)| name.contains(&wanted)) {
        any = true;
        let mut builder = Builder::new();
        builder.preemption_bound = preemption_bound;
        builder.max_branches = 100_000;
        let (began, runs) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&runs);
        builder.check(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            model();
        });
        let (runs, seconds) = (runs.load(Ordering::Relaxed), began.elapsed().as_secs_f32());
        println!("{name}: {runs} interleavings, {seconds:.1} s");
    }
    if any {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
