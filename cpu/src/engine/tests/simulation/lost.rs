//! Commands that wait for a signal that nothing in this process can set.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    stream.submit(
        Arc::new(Owner(owned)),
        Pins::new(),
        Order::Barrier,
        waits,
        signal,
    );
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

/// The state of a signal that another process sets, as the function says.
struct Elsewhere<F>(F);

impl<F: Fn() -> bool + Send + Sync> SharedState for Elsewhere<F> {
    fn read(&self) -> (bool, u64) {
        let is_set = (self.0)();
        (is_set, u64::from(is_set))
    }

    fn set(&self, _started: u64, _ended: u64) -> (bool, u64) {
        self.read()
    }

    fn reset(&self) {}

    fn times(&self) -> (u64, u64) {
        (0, 0)
    }

    fn watch(&self) -> bool {
        true
    }
}

#[test]
fn another_process_may_set_a_signal_that_nothing_else_refers_to() {
    engine();
    let stream = Stream::new(None, Priority::Normal);
    let is_set = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_set);
    let state = Elsewhere(move || seen.load(Ordering::Relaxed));
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

/// A signal that another process sets right after this one has read it so many times.
fn set_after(reads: usize) -> impl SharedState {
    let left = AtomicUsize::new(reads);
    let less = |left: usize| left.checked_sub(1);
    Elsewhere(move || {
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_err()
    })
}

#[test]
fn another_process_may_set_a_signal_while_a_command_begins_to_wait_for_it() {
    engine();
    for reads in 0..10 {
        let stream = Stream::new(None, Priority::Normal);
        let shared = Signal::shared(false, |_| set_after(reads));
        let end = Arc::new(Signal::default());
        submit(&stream, &[&shared], Some(&end));
        while !shared.is_set() {}
        dispatch(shared.refresh());
        assert!(end.is_set(), "set after {reads} reads");
    }
}
