//! The order in which commands of several threads enter a device's engine.

use std::sync::Arc;

use level_zero_sys as sys;
use smallvec::smallvec;

use super::world::engine;
use crate::abi::result::ZeResult;
use crate::engine::{
    DeviceEngine, Kind, Nothing, Operation, Order, Pins, Priority, Signal, Stream,
};

/// A marker that another thread's call interrupts at the last moment before it enters a sequence.
struct Interrupted<F>(F);

impl<F: Fn() + Send + Sync + 'static> Operation for Interrupted<F> {
    fn kind(&self) -> Kind {
        (self.0)();
        Kind::Marker
    }

    fn run(&self, _part: usize) -> ZeResult {
        Ok(())
    }
}

#[test]
fn a_command_does_not_enter_an_engine_before_the_one_that_it_waits_for() {
    engine();
    let device = DeviceEngine::default();
    let [first, second] = [(); 2].map(|()| Stream::new(Some(&device), Priority::Normal));
    let [early, late] = [(); 2].map(|()| Arc::new(Signal::default()));
    let (waits, signal) = (Arc::clone(&early), Arc::clone(&late));
    let other_thread = Interrupted(move || {
        let (waits, signal) = (smallvec![Arc::clone(&waits)], Arc::clone(&signal));
        second.submit(
            Arc::new(Nothing),
            Pins::new(),
            Order::Barrier,
            waits,
            Some(signal),
        );
    });
    let signal = Some(Arc::clone(&early));
    first.submit(
        Arc::new(other_thread),
        Pins::new(),
        Order::Barrier,
        smallvec![],
        signal,
    );
    assert!(early.is_set(), "nothing is before its command");
    assert!(late.is_set(), "what it waits for is set");
}

/// A command that fails.
struct Fails;

impl Operation for Fails {
    fn run(&self, _part: usize) -> ZeResult {
        Err(sys::ZE_RESULT_ERROR_UNKNOWN)
    }
}

#[test]
fn in_an_engine_only_a_command_that_the_program_ordered_behind_all_reports_the_errors_before_it() {
    engine();
    let device = DeviceEngine::default();
    let stream = Stream::new(Some(&device), Priority::Normal);
    stream.submit(
        Arc::new(Fails),
        Pins::new(),
        Order::Unordered,
        smallvec![],
        None,
    );
    let orders = [Order::Unordered, Order::BeforeLater, Order::Barrier];
    let outcomes = orders.map(|order| {
        let signal = Arc::new(Signal::default());
        let set = Some(Arc::clone(&signal));
        stream.submit(Arc::new(Nothing), Pins::new(), order, smallvec![], set);
        assert!(signal.is_set());
        signal.outcome()
    });
    let error = Err(sys::ZE_RESULT_ERROR_UNKNOWN);
    assert_eq!(outcomes, [Ok(()), Ok(()), error]);
}
