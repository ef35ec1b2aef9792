//! Models of what threads of zeusm and of its CPU runtime meet at. Each runs a few threads in every interleaving, and with
//! every value that the memory model lets them read.
//!
//! The code is that of the crates, file by file, compiled with loom's types in the place of the standard library's:
//! those of `crate::process`, of the Python module's `crate::atomic` and of the engine's `primitives`. What a file calls
//! beyond that is replaced by a few lines.
//!
//! Time limits are not modelled, nor is the engine's helper thread, which never ends: loom takes that for a deadlock.
//! The pool's sums of bytes are the standard library's atomics: they change at the pool's locks, not between them.

#![allow(dead_code, reason = "a model uses a part of each file")]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use loom::model::Builder;

mod engine;
mod error;
mod fork_safe;
mod local;
mod pins;
mod pool;
mod process;
mod system;

use error::Result;
use process::atomic;

/// A model: its name, the most preemptions in an interleaving (all of them, without a number), and the model itself.
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
