//! Commands that wait for a signal that nothing can set any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::world::engine;
use crate::abi::result::ZeResult;
use crate::engine::{Operation, Order, Pins, Priority, SharedState, Signal, Stream, dispatch};

/// An operation that owns something.
struct Owner(#[expect(dead_code, reason = "it is dropped")] Arc<()>);

impl Operation for Owner {
    fn run(&self, _part: usize) -> ZeResult {
        Ok(())
    }
}

/// Submits a command, and returns what tells whether it lives.
fn submit(stream: &Stream, waits: &[&Arc<Signal>], signal: Option<&Arc<Signal>>) -> Weak<()> {
    let owned = Arc::new(());
    let alive = Arc::downgrade(&owned);
    let waits = waits.iter().map(|signal| Arc::clone(signal)).collect();
    let signal = signal.map(Arc::clone);
    stream.submit(Owner(owned), Pins::new(), Order::Barrier, waits, signal);
    alive
}

#[test]
fn they_are_dropped_with_the_signal_and_their_stream() {
    engine();
    let [first, second] = [(); 2].map(|()| Stream::new(None, Priority::Normal));
    let [set, unset, next] = [false; 3].map(|set| Arc::new(Signal::new(set, false)));
    let lost = submit(&first, &[&set, &unset], Some(&next));
    dispatch(set.set(0, 0));
    let held = submit(&first, &[], None);
    let further = submit(&second, &[&next], None);
    drop(next);
    assert!(lost.upgrade().is_some() && further.upgrade().is_some());
    drop(unset);
    assert!(lost.upgrade().is_none());
    assert!(further.upgrade().is_none());
    drop(first);
    assert!(held.upgrade().is_none());
}

/// The state of a signal that another process sets.
struct Elsewhere(Arc<AtomicBool>);

impl SharedState for Elsewhere {
    fn read(&self) -> (bool, u64) {
        let is_set = self.0.load(Ordering::Relaxed);
        (is_set, u64::from(is_set))
    }

    fn set(&self, _started: u64, _ended: u64) {}

    fn reset(&self) {}

    fn times(&self) -> (u64, u64) {
        (0, 0)
    }

    fn watch(&self) {}
}

#[test]
fn another_process_may_set_a_signal_that_nothing_else_refers_to() {
    engine();
    let stream = Stream::new(None, Priority::Normal);
    let is_set = Arc::new(AtomicBool::new(false));
    let state = Elsewhere(Arc::clone(&is_set));
    let shared = Signal::shared(false, |_| state);
    let watched = Arc::downgrade(&shared);
    let (end, waits) = (Arc::new(Signal::default()), [&shared]);
    submit(&stream, &waits, Some(&end));
    drop(shared);
    is_set.store(true, Ordering::Relaxed);
    dispatch(watched.upgrade().unwrap().refresh());
    assert!(end.is_set());
    assert!(watched.upgrade().is_none());
}
