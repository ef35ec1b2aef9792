//! Real threads on the real engine, with a native runtime that is another thread: each wait must return, and only when
//! everything that it waits for is complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::Random;
use super::world::{Behaviour, Logged, Moment, World};
use crate::engine::{Kind, Order, Pins, Signal, Stream, begin};
use crate::system::clock::Deadline;

const THREADS: usize = 4;
const ROUNDS: usize = 150;

/// Submits some commands and waits for them in a random way.
fn round(stream: &Stream, world: &Arc<World>, next: &AtomicUsize, random: &mut Random) {
    let kinds = [
        Kind::Native,
        Kind::Native,
        Kind::Marker,
        Kind::Short,
        Kind::Long,
        Kind::NativeDeferred,
    ];
    let count = 1 + random.below(6);
    let first = next.fetch_add(count, Ordering::Relaxed);
    let signal = Arc::new(Signal::default());
    let mut expected = 0;
    for id in first..first + count {
        let is_last = id + 1 == first + count;
        let kind = *random.pick(&kinds);
        expected += usize::from(kind != Kind::Marker);
        let operation = Logged {
            id,
            kind,
            behaviour: Behaviour::Fine,
            world: Arc::clone(world),
        };
        let order = if is_last || random.percent(50) {
            Order::Barrier
        } else {
            Order::Unordered
        };
        let signal = is_last.then(|| Arc::clone(&signal));
        stream.submit(
            Arc::new(operation),
            Pins::new(),
            order,
            SmallVec::new(),
            signal,
        );
    }
    let soon = || Deadline::At(Instant::now() + Duration::from_secs(60));
    assert!(match random.below(4) {
        0 => signal.wait(Deadline::Never),
        1 => signal.wait(soon()),
        2 => stream.synchronize(Deadline::Never).unwrap(),
        _ => stream.synchronize(soon()).unwrap(),
    });
    assert!(signal.is_set());
    let log = world.log.lock();
    let mut ended: Vec<_> = log
        .iter()
        .filter_map(|moment| match moment {
            Moment::End(id) if (first..first + count).contains(id) => Some(*id),
            _ => None,
        })
        .collect();
    ended.sort_unstable();
    ended.dedup();
    assert_eq!(ended.len(), expected, "the wait ended before the commands");
}

#[test]
fn waits_come_back_when_everything_has_ended() {
    begin();
    let (world, next, over) = (World::new(), AtomicUsize::new(0), AtomicBool::new(false));
    let common = Stream::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(1);
            while !over.load(Ordering::Relaxed) {
                world.step(&mut random);
                if random.percent(20) {
                    thread::yield_now();
                }
            }
        });
        let hosts = (0..THREADS).map(|thread| {
            let (world, next, common) = (&world, &next, &common);
            scope.spawn(move || {
                let mut random = Random::new(thread as u64 + 2);
                let mut own = Stream::default();
                for _ in 0..ROUNDS {
                    let stream = if random.percent(30) { common } else { &own };
                    round(stream, world, next, &mut random);
                    if random.percent(10) {
                        own = Stream::default();
                    }
                }
            })
        });
        let hosts: Vec<_> = hosts.collect();
        let outcomes: Vec<_> = hosts
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        over.store(true, Ordering::Relaxed);
        assert!(outcomes.iter().all(Result::is_ok));
    });
}
