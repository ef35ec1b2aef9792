//! Threads that wait for long commands and help the workers.

use std::sync::Arc;

use smallvec::SmallVec;

use super::world::{Behaviour, Logged, Moment, World, engine};
use crate::engine::{Kind, Order, Pins, Priority, Signal, Stream};
use crate::system::clock::Deadline;

/// Waits for a long command, whose parts no worker runs, and not for a short one behind it. Returns whether the long one was
/// complete in time, and the commands of which a part was run.
fn wait(behaviour: Behaviour, timeout: u64) -> (bool, Vec<usize>) {
    engine();
    let (stream, world) = (Stream::new(None, Priority::Normal), World::new());
    let ends = Arc::new(Signal::new(false, false));
    for (id, kind) in [Kind::Long, Kind::Short].into_iter().enumerate() {
        let operation = Logged {
            id,
            kind,
            behaviour: behaviour.clone(),
            world: Arc::clone(&world),
        };
        let signal = (kind == Kind::Long).then(|| Arc::clone(&ends));
        stream.submit(
            Arc::new(operation),
            Pins::new(),
            Order::Barrier,
            SmallVec::new(),
            signal,
        );
    }
    let waited = ends.wait(Deadline::after(timeout));
    let log = world.log.lock();
    let begun = log.iter().filter_map(|moment| match moment {
        Moment::Begin(id) => Some(*id),
        _ => None,
    });
    (waited, begun.collect())
}

#[test]
fn a_wait_runs_the_parts_and_what_follows() {
    assert_eq!(wait(Behaviour::Lasts, u64::MAX), (true, vec![0, 0, 0, 1]));
}

#[test]
fn a_wait_with_a_timeout_runs_the_parts_only() {
    assert_eq!(wait(Behaviour::Fine, 60_000_000_000), (true, vec![0, 0, 0]));
}

#[test]
fn a_wait_begins_no_part_that_may_exceed_its_timeout() {
    assert_eq!(wait(Behaviour::Fine, 1_000_000), (false, vec![]));
    assert_eq!(wait(Behaviour::Lasts, 20_000_000), (false, vec![]));
}
