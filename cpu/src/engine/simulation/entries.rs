//! The order in which commands of several threads enter a device's engine.

use std::sync::Arc;

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
        second.submit(Nothing, Pins::new(), Order::Barrier, waits, Some(signal));
    });
    let signal = Some(Arc::clone(&early));
    first.submit(
        other_thread,
        Pins::new(),
        Order::Barrier,
        smallvec![],
        signal,
    );
    assert!(early.is_set(), "nothing is before its command");
    assert!(late.is_set(), "what it waits for is set");
}
