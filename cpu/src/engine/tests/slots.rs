//! Tests of which commands of a sequence may begin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::abi::result::ZeResult;
use crate::engine::order::{
    Behind, Executor, Help, InOrder, Native, Priority, QueueNumber, Request, Sequence, Slots, Stage,
};
use crate::engine::{Kind, Order};
use crate::system::clock::Deadline;

/// A native queue that does nothing.
struct Queue(usize);

static QUEUES: [Queue; 2] = [Queue(0), Queue(1)];

impl InOrder for Queue {
    fn number(&self) -> QueueNumber {
        QueueNumber(self.0)
    }

    fn ended(&'static self, _position: u64, _outcome: ZeResult) {}

    fn help(&'static self, _position: u64, _deadline: Deadline) -> bool {
        false
    }

    fn request_help(&'static self) -> Request {
        Box::new(())
    }
}

impl Help for Queue {
    fn help(&self, _deadline: Deadline) -> bool {
        false
    }
}

fn native(queue: usize) -> Executor {
    Executor::Native(Native {
        queue: &QUEUES[queue],
        position: 0,
    })
}

fn shared() -> Executor {
    Executor::Shared(Arc::new(Queue(0)))
}

/// Held commands of these kinds and orders.
fn held(commands: &[(Kind, Order)]) -> Slots<usize> {
    let mut slots = Slots::default();
    for (number, (kind, order)) in commands.iter().enumerate() {
        slots.push(*order, *kind, Stage::Held(Box::new(number)));
    }
    slots
}

/// The commands that may begin now, with the queue of those that they follow.
fn released(slots: &mut Slots<usize>) -> Vec<(usize, Option<usize>)> {
    let mut released = Vec::new();
    slots.release(|command, queue| released.push((*command, queue.map(|queue| queue.0))));
    released
}

#[test]
fn native_commands_follow_those_in_flight_in_one_queue() {
    let mut slots = held(&[(Kind::Native, Order::Barrier); 4]);
    assert_eq!(released(&mut slots), [(0, None)]);
    assert_eq!(released(&mut slots), [], "it is in no queue yet");
    slots.executing(0, native(1));
    assert_eq!(released(&mut slots), [(1, Some(1))]);
    slots.executing(1, native(1));
    assert_eq!(released(&mut slots), [(2, Some(1))]);
    drop(slots.complete(0));
    drop(slots.complete(1));
    slots.executing(2, native(0));
    assert_eq!(released(&mut slots), [(3, Some(0))]);
}

#[test]
fn a_command_behind_two_queues_waits() {
    let unordered = (Kind::Native, Order::Unordered);
    let mut slots = held(&[unordered, unordered, (Kind::Marker, Order::AfterEarlier)]);
    assert_eq!(released(&mut slots), [(0, None), (1, None)]);
    slots.executing(0, native(0));
    slots.executing(1, native(1));
    assert_eq!(released(&mut slots), []);
    // A command that is complete behind one that is not.
    drop(slots.complete(1));
    assert_eq!(slots.first(), 0);
    assert_eq!(released(&mut slots), [(2, Some(0))]);
}

#[test]
fn other_commands_wait_for_native_ones() {
    for kind in [Kind::Short, Kind::Long, Kind::NativeDeferred] {
        let mut slots = held(&[(Kind::Native, Order::Barrier), (kind, Order::Barrier)]);
        assert_eq!(released(&mut slots), [(0, None)]);
        slots.executing(0, native(0));
        assert_eq!(released(&mut slots), [], "{kind:?}");
        drop(slots.complete(0));
        assert_eq!(released(&mut slots), [(1, None)]);
    }
}

#[test]
fn commands_wait_for_those_of_other_threads() {
    let mut slots = held(&[(Kind::Long, Order::Barrier), (Kind::Native, Order::Barrier)]);
    assert_eq!(released(&mut slots), [(0, None)]);
    slots.executing(0, shared());
    assert_eq!(released(&mut slots), []);
    drop(slots.complete(0));
    assert_eq!(released(&mut slots), [(1, None)]);
}

#[test]
fn the_last_executor_before_a_command_is_found() {
    let mut slots = held(&[(Kind::Long, Order::Unordered); 3]);
    assert_eq!(released(&mut slots).len(), 3);
    assert!(slots.executor_before(3).is_none());
    let (first, second) = (shared(), shared());
    slots.executing(0, first.clone());
    slots.executing(1, second.clone());
    let is = |slots: &Slots<usize>, end, executor: &Executor| {
        let found = slots.executor_before(end);
        found.is_some_and(|found| found.is(executor))
    };
    assert!(slots.executor_before(0).is_none());
    assert!(is(&slots, 1, &first));
    assert!(is(&slots, 2, &second) && is(&slots, 3, &second));
    drop(slots.complete(0));
    assert_eq!((slots.first(), slots.end()), (1, 3));
    assert!(slots.executor_before(1).is_none());
    assert!(is(&slots, 2, &second));
}

#[test]
fn the_last_command_is_held_back_by_native_ones_only() {
    let behind = |kind, order| {
        let mut slots = held(&[(kind, Order::Barrier), (Kind::Short, order)]);
        let _ = released(&mut slots);
        slots.executing(
            0,
            if kind == Kind::Native {
                native(0)
            } else {
                shared()
            },
        );
        slots.last_behind_native().map(|(number, _)| number)
    };
    assert_eq!(behind(Kind::Native, Order::Barrier), Some(1));
    assert_eq!(behind(Kind::Native, Order::AfterEarlier), Some(1));
    assert_eq!(behind(Kind::Native, Order::Unordered), None);
    assert_eq!(behind(Kind::Long, Order::Barrier), None);
}

/// Counts how often a thread helps, which is of use for the first time only.
struct Helped(AtomicUsize);

impl Help for Helped {
    fn help(&self, _deadline: Deadline) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) == 0
    }

    fn request_help(&self) -> Option<Request> {
        Some(Box::new(()))
    }
}

#[test]
fn a_thread_helps_with_the_commands_before_a_held_one() {
    let sequence = Arc::new(Sequence::new(Priority::Normal));
    for _ in 0..2 {
        let stage = Stage::Released(None);
        sequence.push(&mut sequence.lock(), Order::Barrier, Kind::Long, stage);
    }
    let behind = Behind::executor(&sequence, 1);
    assert!(!behind.help(Deadline::after(0)), "nothing is executed yet");
    assert!(behind.request_help().is_none());
    let helped = Arc::new(Helped(AtomicUsize::new(0)));
    let executor = Executor::Shared(Arc::clone(&helped) as Arc<dyn Help>);
    sequence.lock().executing(0, executor);
    assert!(behind.help(Deadline::after(0)));
    assert_eq!(
        helped.0.load(Ordering::Relaxed),
        1,
        "the second time is of no use"
    );
    assert!(behind.request_help().is_some());
    assert!(!behind.help(Deadline::after(0)));
    drop(sequence);
    assert!(!behind.help(Deadline::after(0)), "the sequence has ended");
}
