//! Lists of a device that share its engine and wait for events that are set and reset several times.

use std::sync::Arc;

use super::world::{Behaviour, Logged, Moment, World, engine, is_idle, run_job};
use super::{Random, simulate};
use crate::engine::{DeviceEngine, Kind, Order, Pins, Priority, Signal, Stream, dispatch};
use crate::system::clock::Deadline;

const LISTS: usize = 4;

struct Lists {
    world: Arc<World>,
    streams: [Stream; LISTS],
    /// How many commands have been submitted; the next one's number.
    count: usize,
}

impl Lists {
    fn new() -> Self {
        engine();
        let device = DeviceEngine::default();
        Self {
            world: World::new(),
            streams: [(); LISTS].map(|()| Stream::new(Some(&device), Priority::Normal)),
            count: 0,
        }
    }

    fn submit(
        &mut self,
        list: usize,
        (kind, behaviour): (Kind, Behaviour),
        wait: Option<&Arc<Signal>>,
        signal: Option<&Arc<Signal>>,
    ) {
        let operation = Logged {
            id: self.count,
            kind,
            behaviour,
            world: Arc::clone(&self.world),
        };
        self.count += 1;
        let waits = wait.into_iter().map(Arc::clone).collect();
        let signal = signal.map(Arc::clone);
        self.streams[list].submit(
            Arc::new(operation),
            Pins::new(),
            Order::Barrier,
            waits,
            signal,
        );
    }

    /// A command that ends when its job is run.
    fn work(&mut self, list: usize) {
        self.submit(list, (Kind::Long, Behaviour::Fine), None, None);
    }

    fn wait(&mut self, list: usize, event: &Arc<Signal>) {
        self.submit(list, (Kind::Long, Behaviour::Fine), Some(event), None);
    }

    fn set(&mut self, list: usize, event: &Arc<Signal>) {
        self.submit(list, (Kind::Long, Behaviour::Fine), None, Some(event));
    }

    fn reset(&mut self, list: usize, event: &Arc<Signal>) {
        let resets = Behaviour::Resets(Arc::clone(event));
        self.submit(list, (Kind::Short, resets), None, None);
    }

    fn finish(&self, random: &mut Random) {
        while !is_idle(&self.world) {
            run_job(random);
            self.world.step(random);
        }
    }

    /// The commands in the order in which they began.
    fn begun(&self) -> Vec<usize> {
        let log = self.world.log.lock();
        let mut begun: Vec<_> = log
            .iter()
            .filter_map(|moment| match moment {
                Moment::Begin(id) => Some(*id),
                _ => None,
            })
            .collect();
        begun.dedup();
        begun
    }

    fn check_idle(&self) {
        for stream in &self.streams {
            assert_eq!(stream.synchronize(Deadline::Now), Ok(true));
        }
    }
}

#[test]
fn a_wait_between_two_pending_resets_delays_no_other_list() {
    simulate(|random| {
        let (mut lists, event) = (Lists::new(), Arc::default());
        lists.set(0, &event);
        lists.reset(0, &event);
        lists.set(0, &event);
        lists.work(0);
        lists.reset(0, &event);
        for _ in 0..2 {
            run_job(random);
        }
        assert!(event.is_set(), "the second reset is pending");
        lists.wait(1, &event);
        lists.set(0, &event);
        lists.work(2);
        lists.finish(random);
        lists.check_idle();
    });
}

#[test]
fn a_wait_delays_no_other_list_while_a_reset_waits_for_the_host() {
    simulate(|random| {
        let (mut lists, event, host) = (Lists::new(), Arc::default(), Arc::default());
        lists.wait(1, &host);
        lists.reset(1, &event);
        lists.set(0, &event);
        lists.work(0);
        lists.wait(2, &event);
        run_job(random);
        assert!(event.is_set(), "no reset has run");
        dispatch(host.set(0, 0));
        lists.finish(random);
        lists.set(0, &event);
        lists.work(3);
        lists.finish(random);
        lists.check_idle();
    });
}

#[test]
fn a_command_that_waits_for_a_pending_set_is_not_overtaken_after_an_earlier_set() {
    simulate(|random| {
        let (mut lists, event) = (Lists::new(), Arc::default());
        lists.set(0, &event);
        lists.reset(0, &event);
        lists.set(0, &event);
        run_job(random);
        assert!(!event.is_set(), "the second set is pending");
        lists.wait(1, &event);
        lists.work(2);
        lists.finish(random);
        assert_eq!(lists.begun(), [0, 1, 2, 3, 4]);
    });
}

#[test]
fn a_dropped_reset_is_not_pending() {
    let (mut lists, event) = (Lists::new(), Arc::<Signal>::default());
    let host = Arc::<Signal>::default();
    dispatch(event.set(0, 0));
    lists.wait(1, &host);
    lists.reset(1, &event);
    assert!(!event.is_expected());
    lists.streams[1] = Stream::default();
    drop(host);
    assert!(event.is_expected());
}

/// A call of the host that changes nothing for the commands which wait for the event.
fn call_host(event: &Signal, random: &mut Random) {
    if random.percent(50) {
        dispatch(event.set(0, 0));
    } else if !event.is_set() {
        event.reset();
    }
}

/// One list sets and resets events and waits for none, and the others wait for them. A command waits for a later one if the
/// command that changed its event last before it resets that.
#[test]
fn commands_that_wait_for_earlier_ones_are_executed_in_the_order_of_submission() {
    simulate(|random| {
        let (mut lists, events) = (Lists::new(), [(); 3].map(|()| Arc::<Signal>::default()));
        let (mut left_set, mut is_stuck) = ([false; 3], [false; LISTS]);
        let mut expected = Vec::new();
        for _ in 0..2 + random.below(30) {
            let (list, index) = (random.below(LISTS), random.below(3));
            let event = &events[index];
            is_stuck[list] |= list > 0 && !left_set[index];
            if !is_stuck[list] {
                expected.push(lists.count);
            }
            match list {
                0 => {
                    left_set[index] = random.percent(70);
                    if left_set[index] {
                        lists.set(0, event);
                    } else {
                        lists.reset(0, event);
                    }
                }
                _ => lists.wait(list, event),
            }
            while random.percent(40) {
                match random.below(4) {
                    0 => call_host(&events[random.below(3)], random),
                    _ => run_job(random),
                }
            }
        }
        lists.finish(random);
        let mut begun = lists.begun();
        begun.retain(|id| expected.contains(id));
        assert_eq!(begun, expected);
    });
}
