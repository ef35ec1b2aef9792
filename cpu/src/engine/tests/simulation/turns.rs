//! Programs whose lists alternate by events that are reset, as the two sides of a channel do.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::world::{Behaviour, Logged, Moment, World, engine, is_idle, run_job};
use super::{Random, simulate};
use crate::engine::{Kind, Nothing, Order, Pins, Signal, Stream, dispatch};
use crate::system::clock::Deadline;

/// Two lists that alternate: `signals[side]` is set when it is that side's turn.
struct Channel {
    lists: [usize; 2],
    signals: [Arc<Signal>; 2],
    turns: usize,
}

struct Run {
    world: Arc<World>,
    streams: Vec<Stream>,
    in_order: Vec<bool>,
    /// For each operation with an entry in the log: its channel and its turn.
    turns: Vec<(usize, usize)>,
}

type Waits = SmallVec<[Arc<Signal>; 4]>;

impl Run {
    fn submit(
        &self,
        list: usize,
        operation: Logged,
        order: Order,
        waits: Waits,
        signal: Option<Arc<Signal>>,
    ) {
        let order = if self.in_order[list] {
            Order::Barrier
        } else {
            order
        };
        self.streams[list].submit(Arc::new(operation), Pins::new(), order, waits, signal);
    }

    fn operation(&mut self, turn: (usize, usize), kind: Kind, behaviour: Behaviour) -> Logged {
        self.turns.push(turn);
        Logged {
            id: self.turns.len() - 1,
            kind,
            behaviour,
            world: Arc::clone(&self.world),
        }
    }

    /// Appends a turn: wait, reset, work, signal.
    fn append(&mut self, number: usize, channel: &mut Channel, random: &mut Random) {
        let turn = (number, channel.turns);
        let (side, other) = (channel.turns % 2, (channel.turns + 1) % 2);
        let list = channel.lists[side];
        let mine = Arc::clone(&channel.signals[side]);
        channel.turns += 1;
        let mut waits: Waits = smallvec![Arc::clone(&mine)];
        if random.percent(60) {
            self.streams[list].submit(
                Arc::new(Nothing),
                Pins::new(),
                Order::BeforeLater,
                std::mem::take(&mut waits),
                None,
            );
        }
        let reset = self.operation(turn, Kind::Short, Behaviour::Resets(mine));
        self.submit(list, reset, Order::Barrier, waits, None);
        let last = random.below(4);
        for step in 0..=last {
            let kinds = [
                Kind::Native,
                Kind::Native,
                Kind::Long,
                Kind::Short,
                Kind::NativeDeferred,
                Kind::Marker,
            ];
            let work = self.operation(turn, *random.pick(&kinds), Behaviour::Fine);
            // In some programs the last command signals by itself, if it follows all others.
            if step == last && random.percent(40) {
                let signal = Arc::clone(&channel.signals[other]);
                return self.submit(list, work, Order::Barrier, Waits::new(), Some(signal));
            }
            self.submit(list, work, Order::Unordered, Waits::new(), None);
            if random.percent(30) {
                self.streams[list].submit(
                    Arc::new(Nothing),
                    Pins::new(),
                    Order::Barrier,
                    Waits::new(),
                    None,
                );
            }
        }
        let signal = Some(Arc::clone(&channel.signals[other]));
        self.streams[list].submit(
            Arc::new(Nothing),
            Pins::new(),
            Order::Barrier,
            Waits::new(),
            signal,
        );
    }

    /// Every turn ran completely, and after the previous one.
    fn check(&self, channels: &[Channel]) {
        let log = self.world.log.lock();
        let mut at = vec![0; channels.len()];
        for moment in log.iter() {
            let (Moment::Begin(id) | Moment::End(id)) = *moment else {
                continue;
            };
            let (channel, turn) = self.turns[id];
            assert!(
                turn == at[channel] || turn == at[channel] + 1,
                "turn {turn} after {}",
                at[channel]
            );
            at[channel] = turn;
        }
        for (channel, at) in channels.iter().zip(at) {
            assert_eq!(at + 1, channel.turns);
            let set = channel.signals.each_ref().map(|signal| signal.is_set());
            assert_eq!(set, [channel.turns % 2 == 0, channel.turns % 2 == 1]);
        }
        for stream in &self.streams {
            assert_eq!(stream.synchronize(Deadline::Now), Ok(true));
        }
    }
}

#[test]
fn lists_take_turns_by_events_that_are_reset() {
    simulate(|random| {
        engine();
        let lists = 2 + random.below(3);
        let mut run = Run {
            world: World::new(),
            streams: (0..lists).map(|_| Stream::default()).collect(),
            in_order: (0..lists).map(|_| random.percent(40)).collect(),
            turns: Vec::new(),
        };
        let mut channels: Vec<Channel> = (0..1 + random.below(3))
            .map(|_| Channel {
                lists: [random.below(lists), random.below(lists)],
                signals: [Arc::default(), Arc::default()],
                turns: 0,
            })
            .collect();
        let mut begun = vec![false; channels.len()];
        let mut left = 2 + random.below(16);
        let pace = 1 + random.below(8);
        while left > 0 || !is_idle(&run.world) || begun.contains(&false) {
            match random.below(12) {
                choice if choice < pace => {
                    let number = random.below(channels.len());
                    if left > 0 {
                        left -= 1;
                        run.append(number, &mut channels[number], random);
                    } else if !std::mem::replace(&mut begun[number], true) {
                        dispatch(channels[number].signals[0].set(0, 0));
                    }
                }
                10 => run_job(random),
                11 => {
                    let number = random.below(channels.len());
                    if !std::mem::replace(&mut begun[number], true) {
                        dispatch(channels[number].signals[0].set(0, 0));
                    }
                }
                _ => run.world.step(random),
            }
        }
        channels.retain(|channel| channel.turns > 0);
        if channels.len() == begun.len() {
            run.check(&channels);
        }
    });
}
