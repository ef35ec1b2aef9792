//! Tests of the recorder by itself; `tests/python/test_history.py` has those with pools and memory.

use std::time::{Duration, Instant};

use super::event::{Action, Failure, Place};
use super::operation::{Executed, Operation};
use super::recorder::{self, Options, Recorder};
use super::stack::{self, StackScope};

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
    let recording = recorder.into_recording();
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
    let holders = recorder::holders(recorder.held(), |_| true, 2);
    let found: Vec<_> = holders
        .iter()
        .map(|holder| (holder.stack, holder.bytes, holder.blocks))
        .collect();
    assert_eq!(found, [(Some(0), 35, 2), (Some(1), 30, 1)]);
}

/// An operation of a queue with this size, which is its number, too.
fn executed(size: usize, queue: u64, submission: Instant, delay: u64, duration: u64) -> Executed {
    Executed {
        number: size as u64,
        submission,
        delay: Duration::from_nanos(delay),
        operation: Operation {
            time: 0,
            duration,
            name: "copy",
            size,
            device: 1,
            queue,
        },
    }
}

#[test]
fn operations_of_a_queue_do_not_overlap_and_keep_their_order() {
    let mut recorder = Recorder::new(Options::default());
    let now = Instant::now();
    // Those of sizes 2 and 3 were measured late.
    recorder.add_operations(vec![
        executed(1, 1, now, 100, 50),
        executed(3, 1, now, 990, 20),
        executed(2, 1, now, 900, 30),
        executed(4, 1, now, 260, 10),
        executed(5, 2, now, 120, 40),
    ]);
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
fn the_operations_with_the_earliest_start_are_dropped_and_counted() {
    let before = Instant::now();
    let mut recorder = Recorder::new(Options {
        max_events: Some(2),
    });
    let start = Instant::now();
    // One that was submitted before the recording; and one that is known last and started first.
    recorder.add_operations(vec![executed(9, 1, before, 1, 1)]);
    let later = (1..=200).map(|size| executed(size, 1, start, 1000 * size as u64, 1));
    recorder.add_operations(later.collect());
    recorder.add_operations(vec![executed(1, 2, start, 1, 1_000_000)]);
    assert!(recorder.operations.len() < 200);
    let recording = recorder.clone().into_recording();
    let sizes: Vec<usize> = recording.operations.iter().map(|it| it.size).collect();
    assert_eq!((sizes, recording.dropped_operations), (vec![199, 200], 199));
    assert_eq!(recorder.into_recording().dropped_operations, 199);
}
