//! Tests of the recorder by itself; `tests/python/test_history.py` has those with pools and memory.

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::event::{Action, Failure, Place};
use super::operation::{Execution, InFlight, Submission, Submitted};
use super::recorder::{Options, Recorder};
use super::stack::{self, StackScope};
use crate::process::Mutex;

fn add(recorder: &mut Recorder, action: Action, address: usize, size: usize, stack: u32) {
    recorder.add(action, address, size, &Place::default(), None, Some(stack));
}

#[test]
fn scopes_of_stacks_nest() {
    assert_eq!(stack::current(), None);
    let outer = StackScope::enter(1);
    {
        let _inner = StackScope::enter(2);
        assert_eq!(stack::current(), Some(2));
        let _none = StackScope::enter(None);
        assert_eq!(stack::current(), None);
    }
    assert_eq!(stack::current(), Some(1));
    drop(outer);
    assert_eq!(stack::current(), None);
}

#[test]
fn the_oldest_events_are_dropped_and_counted_and_blocks_stay() {
    let mut recorder = Recorder::new(Options {
        max_events: Some(3),
    });
    for address in 1..=5 {
        add(&mut recorder, Action::Allocate, address, 10, 0);
    }
    add(&mut recorder, Action::Free, 1, 10, 0);
    let recording = recorder.into_recording();
    assert_eq!(recording.dropped, 3);
    let addresses: Vec<usize> = recording.events.iter().map(|event| event.address).collect();
    assert_eq!(addresses, [4, 5, 1]);
    let mut live: Vec<usize> = recording.live.into_keys().collect();
    live.sort_unstable();
    assert_eq!(live, [2, 3, 4, 5]);
    assert!(recording.events.is_sorted_by_key(|event| event.time));
    assert_eq!(recording.threads.len(), 1);
}

#[test]
fn failures_refer_to_the_events_that_are_kept() {
    let mut recorder = Recorder::new(Options {
        max_events: Some(2),
    });
    for size in [1, 2, 3] {
        add(&mut recorder, Action::Fail, 0, size, 0);
        recorder.add_failure(Failure {
            cached: size,
            ..Failure::default()
        });
    }
    let recording = recorder.recording();
    let failures: Vec<_> = recording
        .failures
        .iter()
        .map(|failure| (failure.event, failure.cached))
        .collect();
    assert_eq!(failures, [(0, 2), (1, 3)]);
    assert_eq!(recording.events[1].size, 3);
}

#[test]
fn those_who_hold_the_most_come_first() {
    let mut recorder = Recorder::new(Options::default());
    for (address, size, stack) in [(1, 10, 0), (2, 30, 1), (3, 5, 2), (4, 25, 0), (5, 1, 3)] {
        add(&mut recorder, Action::Allocate, address, size, stack);
    }
    add(&mut recorder, Action::Free, 5, 1, 9);
    let holders = recorder.holders(|_| true, 2);
    let found: Vec<_> = holders
        .iter()
        .map(|holder| (holder.stack, holder.bytes, holder.blocks))
        .collect();
    assert_eq!(found, [(Some(0), 35, 2), (Some(1), 30, 1)]);
}

/// The completion of an operation that a test completes.
struct Fake(Arc<Mutex<Poll<Option<Execution>>>>);

impl InFlight for Fake {
    fn execution(&self) -> Poll<Option<Execution>> {
        *self.0.lock()
    }
}

fn submission(size: usize, queue: u64) -> (Submission, Arc<Mutex<Poll<Option<Execution>>>>) {
    let state = Arc::new(Mutex::new(Poll::Pending));
    let submission = Submission {
        name: "copy",
        size,
        device: 1,
        queue,
        number: size as u64,
        time: Instant::now(),
        in_flight: Box::new(Fake(Arc::clone(&state))),
    };
    (submission, state)
}

fn execution(delay: u64, duration: u64) -> Execution {
    Execution {
        delay: Duration::from_nanos(delay),
        duration: Duration::from_nanos(duration),
    }
}

#[test]
fn complete_operations_are_taken_once() {
    let mut submitted = Submitted::default();
    let states: Vec<_> = (0..4)
        .map(|size| {
            let (submission, state) = submission(size, 1);
            submitted.add(submission);
            state
        })
        .collect();
    let sizes = |taken: Vec<(Submission, Option<Execution>)>| -> Vec<usize> {
        taken
            .iter()
            .map(|(submission, _)| submission.size)
            .collect()
    };
    assert!(submitted.take_complete().is_empty());
    *states[0].lock() = Poll::Ready(Some(execution(0, 1)));
    *states[2].lock() = Poll::Ready(None);
    assert_eq!(sizes(submitted.take_oldest()), [0]);
    assert!(submitted.take_oldest().is_empty());
    assert_eq!(sizes(submitted.take_complete()), [2]);
    *states[1].lock() = Poll::Ready(None);
    *states[3].lock() = Poll::Ready(None);
    assert_eq!(sizes(submitted.take_oldest()), [1, 3]);
}

#[test]
fn operations_of_a_queue_do_not_overlap_and_keep_their_order() {
    let mut recorder = Recorder::new(Options::default());
    let time = Instant::now();
    // Size, which is the number in the queue, too; queue; measured delay; duration. Those of sizes 2 and 3 were measured late.
    let executed = [
        (1, 1, 100, 50),
        (3, 1, 990, 20),
        (2, 1, 900, 30),
        (4, 1, 260, 10),
        (5, 2, 120, 40),
    ];
    for (size, queue, delay, duration) in executed {
        let (mut submission, _) = submission(size, queue);
        submission.time = time;
        recorder.add_operation(&submission, &execution(delay, duration));
    }
    let found = recorder.into_recording().operations;
    let first = found[0].time;
    let found: Vec<_> = found
        .iter()
        .map(|it| (it.size, it.time - first, it.duration))
        .collect();
    assert_eq!(
        found,
        [
            (1, 0, 50),
            (5, 20, 40),
            (2, 110, 30),
            (3, 140, 20),
            (4, 160, 10)
        ]
    );
}

#[test]
fn the_oldest_operations_are_dropped_and_counted() {
    // It was submitted before the recording.
    let (before, _) = submission(0, 1);
    let mut recorder = Recorder::new(Options {
        max_events: Some(2),
    });
    recorder.add_operation(&before, &execution(1, 1));
    for size in 1..=5 {
        recorder.add_operation(&submission(size, 1).0, &execution(1, 1));
    }
    let recording = recorder.recording();
    let sizes: Vec<usize> = recording.operations.iter().map(|it| it.size).collect();
    assert_eq!((sizes, recording.dropped_operations), (vec![4, 5], 3));
}
