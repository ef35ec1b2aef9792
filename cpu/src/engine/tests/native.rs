//! Tests of what is in flight in a native queue, and of the waiter.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use level_zero_sys as sys;
use smallvec::SmallVec;

use super::LONG;
use crate::abi::result::ZeResult;
use crate::engine::native::{InFlight, NativeQueues, Waiter};
use crate::engine::order::{Changes, InOrder, NativeEvent, Nothing, QueueNumber, Token};
use crate::engine::{Kind, Pins};
use crate::system::clock::Deadline;

const FAILED: ZeResult = Err(sys::ZE_RESULT_ERROR_UNKNOWN);

/// An event that says when a thread waits for it.
struct Event(Sender<()>);

impl Event {
    fn observed() -> (Arc<dyn NativeEvent>, Receiver<()>) {
        let (sender, receiver) = channel();
        (Arc::new(Self(sender)), receiver)
    }
}

impl NativeEvent for Event {
    fn watch(&self, _key: u64) -> bool {
        true
    }

    fn flush(&self) {}

    fn wait(&self) {
        self.0.send(()).unwrap();
    }

    fn times(&self) -> Option<(u64, u64)> {
        None
    }
}

/// A native command, or a marker if it has no event.
fn token(number: u64, event: Option<Arc<dyn NativeEvent>>) -> Box<Token> {
    Box::new(Token {
        sequence: None,
        number,
        operation: Arc::new(Nothing),
        kind: Kind::Marker,
        pins: Pins::new(),
        waits: SmallVec::new().into_iter(),
        shared: None,
        changes: Changes::new(None, None, false, false),
        faults: Arc::default(),
        queue: None,
        event,
    })
}

/// Native commands, and markers where `false`.
fn in_flight(natives: &[bool]) -> InFlight {
    let mut commands = InFlight::default();
    for (number, native) in natives.iter().enumerate() {
        let event = native.then(|| Event::observed().0);
        commands.push(token(number as u64, event), number as u64 * 10);
    }
    commands
}

#[test]
fn one_thread_at_a_time_completes_commands() {
    let mut commands = in_flight(&[true]);
    assert!(commands.begin_draining());
    assert!(!commands.begin_draining());
    assert!(commands.front().is_none());
    assert!(commands.begin_draining(), "that thread has stopped");
}

#[test]
fn commands_are_completed_in_order() {
    let mut commands = in_flight(&[true, true, false]);
    assert!(commands.note(1, Ok(())));
    assert!(commands.front().is_none(), "the first has not ended");
    assert!(commands.note(0, FAILED));
    for (number, outcome) in [(0, FAILED), (1, Ok(())), (2, Ok(()))] {
        let (token, noted, started) = commands.front().unwrap();
        assert_eq!((token.number, noted), (number, outcome));
        assert_eq!(started, number * 10);
        assert_eq!(commands.end(), 3);
        commands.pop();
    }
    assert!(commands.is_empty());
    assert_eq!(commands.end(), 3);
}

#[test]
fn the_last_native_command_is_found() {
    let mut commands = in_flight(&[true, false, true, false]);
    let found = |commands: &InFlight, position| {
        let found = commands.issued_before(position);
        found.map(|(position, _)| position)
    };
    assert_eq!(found(&commands, 3), Some(2));
    assert_eq!(found(&commands, 1), Some(0));
    assert_eq!(found(&commands, 4), None);
    assert!(commands.last().is_some());
    commands.note(2, Ok(()));
    assert_eq!(found(&commands, 3), Some(0));
    commands.note(0, Ok(()));
    assert_eq!(found(&commands, 3), None);
    assert!(commands.last().is_none());
}

#[test]
fn an_end_is_noted_once() {
    let mut commands = in_flight(&[true]);
    assert!(commands.note(0, FAILED));
    assert!(commands.note(0, Ok(())));
    assert_eq!(commands.front().unwrap().1, FAILED);
    assert!(!commands.note(1, Ok(())), "there is no such command");
}

#[test]
fn a_thread_that_waits_inside_completes_its_command_if_it_is_the_last() {
    let mut alone = in_flight(&[true, false]);
    alone.await_inside(Some(0));
    assert!(!alone.note(0, Ok(())));

    let mut another = in_flight(&[true, true]);
    another.await_inside(Some(0));
    assert!(another.note(0, Ok(())), "a native command is behind it");

    let mut ended = in_flight(&[true, true]);
    ended.note(1, Ok(()));
    ended.await_inside(Some(0));
    assert!(ended.note(0, Ok(())), "also if that has ended");

    let mut back = in_flight(&[true, true]);
    back.await_inside(Some(1));
    back.await_inside(None);
    assert!(back.note(1, Ok(())), "no thread waits");
}

fn waiter() -> &'static Waiter {
    Box::leak(Box::default())
}

#[test]
fn the_role_is_for_one_thread_and_one_busy_queue() {
    let waiter = waiter();
    let hold = || waiter.try_hold(|| ());
    assert!(hold());
    waiter.queue_is_busy();
    assert!(hold());
    let mut inside = true;
    assert!(waiter.try_hold(|| inside = hold()));
    assert!(!inside);
    waiter.queue_is_busy();
    assert!(!hold(), "it could execute commands of another queue");
    waiter.queue_is_idle();
    assert!(hold());
}

/// Has the helper find an event, and says when it waits for it.
fn look_at_event(waiter: &'static Waiter) -> Receiver<()> {
    let (event, waited) = Event::observed();
    let found = zeusm_process::Mutex::new(Some(event));
    waiter.look_at(move || found.lock().take());
    waited
}

#[test]
fn the_helper_waits_for_whoever_asks() {
    let waiter = waiter();
    for _ in 0..2 {
        let waited = look_at_event(waiter);
        let _request = waiter.request();
        waited.recv_timeout(LONG).unwrap();
    }
}

#[test]
fn the_helper_leaves_the_role_to_the_thread_that_has_it() {
    let waiter = waiter();
    let waited = look_at_event(waiter);
    let mut request = None;
    assert!(waiter.try_hold(|| {
        request = Some(waiter.request());
        let early = waited.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err());
    }));
    waited.recv_timeout(LONG).unwrap();
}

#[test]
fn the_helper_stops_when_no_one_asks() {
    let waiter = waiter();
    let looks: &AtomicUsize = Box::leak(Box::default());
    let (event, waited) = Event::observed();
    waiter.look_at(move || {
        looks.fetch_add(1, Ordering::Relaxed);
        Some(Arc::clone(&event))
    });
    let request = waiter.request();
    waited.recv_timeout(LONG).unwrap();
    drop(request);
    let looked = looks.load(Ordering::Relaxed);
    thread::sleep(Duration::from_millis(50));
    // It may have begun another look before the request was dropped.
    assert!(looks.load(Ordering::Relaxed) <= looked + 1);
}

#[test]
fn a_thread_with_a_deadline_does_not_help() {
    let queue = NativeQueues::new().get(QueueNumber(0));
    assert!(queue.help(0, Deadline::Never), "its command has ended");
    for deadline in [Deadline::Now, Deadline::after(1 << 40)] {
        assert!(!queue.help(0, deadline), "a kernel may take longer");
    }
}
