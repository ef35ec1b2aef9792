//! Tests of the threads of the workers.

#![allow(clippy::unwrap_used)]

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};

use super::LONG;
use crate::engine::Priority;
use crate::engine::execute::{Job, Workers};

/// Runs jobs, each of which waits for all others.
fn together(workers: &'static Workers, count: usize) {
    let (sender, receiver) = channel();
    let barrier = Arc::new(Barrier::new(count));
    let job = || {
        let (sender, barrier) = (sender.clone(), Arc::clone(&barrier));
        Box::new(move || {
            barrier.wait();
            sender.send(()).unwrap();
        }) as Job
    };
    let jobs: Vec<_> = (0..count).map(|_| job()).collect();
    workers.enqueue(Priority::Normal, jobs);
    for _ in 0..count {
        receiver.recv_timeout(LONG).unwrap();
    }
}

#[test]
fn jobs_have_a_thread_each_also_after_others() {
    let workers: &'static Workers = Box::leak(Box::default());
    assert!(workers.has_some());
    // Three at once where there is one thread: two are started.
    for count in [3, 1, 1, 2, 3] {
        together(workers, count);
    }
}
