//! Commands that are submitted while a thread executes a queued one.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Random;
use super::world::{Behaviour, Logged, Moment, World, engine, is_idle, run_job};
use crate::abi::result::ZeResult;
use crate::engine::{Kind, Operation, Order, Pins, Signal, Stream, flush_all};
use crate::system::clock::Deadline;

/// A brief native operation, during which another thread calls.
struct Interrupted<F>(F);

impl<F: Fn() + Send + Sync + 'static> Operation for Interrupted<F> {
    fn kind(&self) -> Kind {
        Kind::Native
    }

    fn brief_time(&self) -> Option<u64> {
        Some(1)
    }

    fn run(&self, _part: usize) -> ZeResult {
        Ok(())
    }

    fn execute(&self) -> ZeResult {
        (self.0)();
        Ok(())
    }
}

/// Submits a command of this kind to a stream while a brief command of the stream is executed. Returns what had happened to it
/// at the end of that wait.
fn submit_meanwhile(kind: Kind, is_brief: bool) -> (Vec<Moment>, Arc<World>, Arc<Stream>) {
    engine();
    let (world, stream) = (World::new(), Arc::new(Stream::default()));
    let submit = {
        let (world, stream) = (Arc::clone(&world), Arc::clone(&stream));
        move || {
            world.set_brief(is_brief);
            let operation = Logged {
                id: 0,
                kind,
                behaviour: Behaviour::Fine,
                world: Arc::clone(&world),
            };
            let order = Order::Unordered;
            stream.submit(operation, Pins::new(), order, SmallVec::new(), None);
            assert!(
                world.is_idle(),
                "it is issued before the one that is executed has ended"
            );
        }
    };
    let ended = Arc::new(Signal::default());
    let (order, signal) = (Order::Barrier, Some(Arc::clone(&ended)));
    let waits = SmallVec::new();
    stream.submit(Interrupted(submit), Pins::new(), order, waits, signal);
    assert!(ended.wait(Deadline::Never));
    let log = world.log.lock().clone();
    (log, world, stream)
}

#[test]
fn a_long_command_is_issued_afterwards() {
    for kind in [Kind::Native, Kind::NativeDeferred] {
        let (log, world, _) = submit_meanwhile(kind, false);
        assert!(log.is_empty());
        assert!(!world.is_idle(), "it is not issued");
    }
}

#[test]
fn a_brief_command_is_queued_until_a_thread_waits_for_it() {
    let (log, world, stream) = submit_meanwhile(Kind::Native, true);
    assert!(log.is_empty() && world.is_idle());
    assert_eq!(stream.synchronize(Deadline::Never), Ok(true));
    assert_eq!(*world.log.lock(), [Moment::Begin(0), Moment::End(0)]);
}

/// The second command may wait for one that the first one releases.
#[test]
fn a_command_that_waits_for_an_executed_one_runs_before_the_next_is_executed() {
    engine();
    let (world, [stream, other]) = (World::new(), [(); 2].map(|()| Stream::default()));
    let [first, second] = [(); 2].map(|()| Arc::new(Signal::default()));
    let submit = |operation, signal: &Arc<Signal>| {
        let (order, signal) = (Order::Barrier, Some(Arc::clone(signal)));
        stream.submit(operation, Pins::new(), order, SmallVec::new(), signal);
    };
    submit(
        Interrupted(Box::new(|| ()) as Box<dyn Fn() + Send + Sync>),
        &first,
    );
    let released = Logged {
        id: 0,
        kind: Kind::Short,
        behaviour: Behaviour::Fine,
        world: Arc::clone(&world),
    };
    let waits = SmallVec::from_iter([first]);
    other.submit(released, Pins::new(), Order::Barrier, waits, None);
    let has_run = move || assert!(!world.log.lock().is_empty(), "it has not run");
    submit(Interrupted(Box::new(has_run)), &second);
    assert!(second.wait(Deadline::Never));
    assert_eq!(second.outcome(), Ok(()), "the second one has panicked");
}

/// No thread waits: a queued command would wait for the flusher at each link of the chain.
#[test]
fn a_command_that_a_worker_makes_ready_is_issued() {
    engine();
    let (world, stream, mut random) = (World::new(), Stream::default(), Random::new(1));
    for (id, kind) in [Kind::Native, Kind::Long, Kind::Native]
        .into_iter()
        .enumerate()
    {
        let operation = Logged {
            id,
            kind,
            behaviour: Behaviour::Fine,
            world: Arc::clone(&world),
        };
        let order = Order::Barrier;
        stream.submit(operation, Pins::new(), order, SmallVec::new(), None);
    }
    assert!(engine().flusher.has_queued());
    flush_all();
    while !is_idle(&world) {
        assert!(!engine().flusher.has_queued());
        world.set_brief(true);
        world.step(&mut random);
        assert!(!engine().flusher.has_queued());
        run_job(&mut random);
    }
    assert_eq!(stream.synchronize(Deadline::Now), Ok(true));
}
