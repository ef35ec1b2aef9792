//! Models: functions that loom runs in every interleaving of a few threads, with every value that the memory model allows them to
//! read. Each is a test of its crate, which is compiled with `--cfg loom` for it.
//!
//! Timeouts do not pass in models, and nothing forks.

#[cfg(test)]
mod models;
mod object;
pub mod sync;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use loom::model::Builder;

pub use loom;

/// Runs `model` in every interleaving, with at most `preemptions` of a thread that could go on.
pub fn model(name: &str, preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    // One model at a time: static variables have the loom objects of one.
    static RUNNING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _running = RUNNING.lock();
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 100_000;
    let (began, runs) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&runs);
    builder.check(move || {
        object::begin_interleaving();
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let (runs, seconds) = (runs.load(Ordering::Relaxed), began.elapsed().as_secs_f32());
    println!("{name}: {runs} interleavings, {seconds:.1} s");
}
