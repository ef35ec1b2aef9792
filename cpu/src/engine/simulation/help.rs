//! Threads that wait for long commands and help the workers.

use std::sync::Arc;

use smallvec::SmallVec;

use super::world::{Behaviour, Logged, World, engine};
use crate::engine::{Kind, Order, Pins, Priority, Stream};
use crate::system::clock::Deadline;

/// Waits for a command whose parts no worker runs. Returns whether it was complete in time, and whether a part of it was run.
fn wait(timeout: u64) -> (bool, bool) {
    engine();
    let (stream, world) = (Stream::new(None, Priority::Normal), World::new());
    let operation = Logged {
        id: 0,
        kind: Kind::Long,
        behaviour: Behaviour::Fine,
        world: Arc::clone(&world),
    };
    stream.submit(
        operation,
        Pins::new(),
        Order::Barrier,
        SmallVec::new(),
        None,
    );
    let waited = stream.synchronize(Deadline::after(timeout)).unwrap();
    (waited, !world.log.lock().is_empty())
}

#[test]
fn a_wait_with_or_without_a_timeout_runs_the_parts() {
    assert_eq!(wait(60_000_000_000), (true, true));
    assert_eq!(wait(u64::MAX), (true, true));
}

#[test]
fn a_wait_begins_no_part_that_may_exceed_its_timeout() {
    assert_eq!(wait(1_000_000), (false, false));
}
