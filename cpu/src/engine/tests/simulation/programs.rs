//! Random programs with events that are signalled once, so that the set of commands that run does not depend on the
//! schedule.

use std::sync::Arc;

use smallvec::SmallVec;

use super::world::{Behaviour, Logged, Moment, World, engine, is_idle, run_job};
use super::{Random, simulate};
use crate::engine::order::WINDOW;
use crate::engine::{DeviceEngine, Kind, Order, Pins, Priority, Signal, Stream, dispatch};
use crate::system::clock::Deadline;

/// A command of a program.
struct Command {
    list: usize,
    order: Order,
    kind: Kind,
    behaviour: Behaviour,
    /// Signals by number: each command sets the one of its own number, further ones are set by the host.
    waits: Vec<usize>,
}

impl Command {
    /// Whether it leaves no entry in the log: a marker, or a native command that was never enqueued.
    fn is_traceless(&self) -> bool {
        let is_native = matches!(self.kind, Kind::Native | Kind::NativeDeferred);
        self.kind == Kind::Marker || is_native && matches!(self.behaviour, Behaviour::Panics)
    }
}

struct Program {
    lists: usize,
    commands: Vec<Command>,
    /// How many signals the host may set beside those of the commands, and whether it does.
    host: Vec<bool>,
    /// Whether the device has an engine, whose lists execute all commands in order.
    is_ordered: bool,
}

impl Program {
    fn random(random: &mut Random) -> Self {
        let lists = 1 + random.below(4);
        let in_order: Vec<bool> = (0..lists).map(|_| random.percent(30)).collect();
        let host: Vec<bool> = (0..random.below(4)).map(|_| random.percent(80)).collect();
        let most = if random.percent(10) { 60 } else { 14 };
        let count = 1 + random.below(most);
        let native = 20 + random.below(60);
        let commands = (0..count).map(|number| {
            let list = random.below(lists);
            let kinds = if random.percent(native) {
                [
                    Kind::Native,
                    Kind::Native,
                    Kind::Marker,
                    Kind::NativeDeferred,
                ]
            } else {
                [Kind::Marker, Kind::Short, Kind::Long, Kind::Short]
            };
            let orders = [
                Order::Unordered,
                Order::Unordered,
                Order::AfterEarlier,
                Order::BeforeLater,
                Order::Barrier,
            ];
            let behaviours = [Behaviour::Fails, Behaviour::Panics];
            // Most wait for earlier commands; a few for later ones, which may never run.
            let reach = if random.percent(5) { count } else { number };
            let waits = (0..random.below(3)).filter_map(|_| {
                let choice = random.below(reach + host.len());
                (reach + host.len() > 0).then_some(if choice < reach {
                    choice
                } else {
                    count + choice - reach
                })
            });
            let waits = if reach + host.len() == 0 {
                Vec::new()
            } else {
                waits.collect()
            };
            Command {
                list,
                order: if in_order[list] {
                    Order::Barrier
                } else {
                    *random.pick(&orders)
                },
                kind: *random.pick(&kinds),
                behaviour: if random.percent(3) {
                    random.pick(&behaviours).clone()
                } else {
                    Behaviour::Fine
                },
                waits,
            }
        });
        let commands = commands.collect();
        Self {
            lists,
            commands,
            host,
            is_ordered: false,
        }
    }

    /// The commands that a command follows, given the order of submission of its list.
    fn follows(&self, list: &[usize], place: usize) -> Vec<usize> {
        let order = self.commands[list[place]].order;
        let all = self.is_ordered || matches!(order, Order::AfterEarlier | Order::Barrier);
        let is_barrier = |number: &usize| {
            matches!(
                self.commands[*number].order,
                Order::BeforeLater | Order::Barrier
            )
        };
        list[..place]
            .iter()
            .copied()
            .filter(|number| all || is_barrier(number))
            .collect()
    }

    /// The reference: the signals that are set in the end, when commands run one after another. With `fifo`, a command
    /// also waits for the whole list before it, which is legal and may complete fewer.
    fn reference(&self, lists: &[Vec<usize>], fifo: bool) -> Vec<bool> {
        let mut set = vec![false; self.commands.len()];
        set.extend(&self.host);
        loop {
            let before = set.clone();
            for list in lists {
                for (place, number) in list.iter().enumerate() {
                    let follows = if fifo {
                        list[..place].to_vec()
                    } else {
                        self.follows(list, place)
                    };
                    let mut needs = follows.iter().chain(&self.commands[*number].waits);
                    set[*number] = needs.all(|need| set[*need]);
                }
            }
            if set == before {
                return set;
            }
        }
    }
}

/// A program that runs.
struct Run<'a> {
    program: &'a Program,
    world: Arc<World>,
    signals: Vec<Arc<Signal>>,
    streams: Vec<Stream>,
    /// The commands of each list in the order of their submission.
    lists: Vec<Vec<usize>>,
}

impl<'a> Run<'a> {
    fn new(program: &'a Program, device: Option<&DeviceEngine>) -> Self {
        engine();
        let signals = program.commands.len() + program.host.len();
        Self {
            program,
            world: World::new(),
            signals: (0..signals).map(|_| Arc::new(Signal::default())).collect(),
            streams: (0..program.lists)
                .map(|_| Stream::new(device, Priority::Normal))
                .collect(),
            lists: vec![Vec::new(); program.lists],
        }
    }

    /// A call of a host thread: a submission or a signal.
    fn call(&mut self, number: usize) {
        let Some(command) = self.program.commands.get(number) else {
            if self.program.host[number - self.program.commands.len()] {
                self.world.note(Moment::HostSignal(number));
                dispatch(self.signals[number].set(0, 0));
            }
            return;
        };
        self.lists[command.list].push(number);
        let operation = Logged {
            id: number,
            kind: command.kind,
            behaviour: command.behaviour.clone(),
            world: Arc::clone(&self.world),
        };
        let waits: SmallVec<_> = command
            .waits
            .iter()
            .map(|wait| Arc::clone(&self.signals[*wait]))
            .collect();
        let signal = Arc::clone(&self.signals[number]);
        self.streams[command.list].submit(
            Arc::new(operation),
            Pins::new(),
            command.order,
            waits,
            Some(signal),
        );
    }

    fn is_set(&self) -> Vec<bool> {
        self.signals.iter().map(|signal| signal.is_set()).collect()
    }

    /// When a command is complete, all commands that it follows or waited for are complete.
    fn check_visibility(&self) {
        let set = self.is_set();
        for list in &self.lists {
            for (place, number) in list.iter().enumerate().filter(|(_, number)| set[**number]) {
                let follows = self.program.follows(list, place);
                let mut needs = follows.iter().chain(&self.program.commands[*number].waits);
                assert!(
                    needs.all(|need| set[*need]),
                    "{number} is complete too early"
                );
            }
        }
    }

    /// The earliest time at which each signal was set according to the log: the end of its command.
    fn check_log(&self) {
        let log = self.world.log.lock();
        let mut begun = vec![None; self.signals.len()];
        let mut ended = vec![None; self.signals.len()];
        for (time, moment) in log.iter().enumerate() {
            match *moment {
                Moment::Begin(id) => {
                    begun[id].get_or_insert(time);
                }
                Moment::End(id) | Moment::HostSignal(id) => ended[id] = Some(time),
            }
        }
        // The end of a command without a log entry is the latest end of the commands that it follows or waited for.
        let set = self.is_set();
        for number in 0..set.len() {
            let command = self.program.commands.get(number);
            let is_traceless = command.is_some_and(Command::is_traceless);
            assert!(
                !set[number] || is_traceless || ended[number].is_some(),
                "{number} was signalled and never ran"
            );
        }
        for list in &self.lists {
            for (place, number) in list.iter().enumerate() {
                let Some(time) = begun[*number] else { continue };
                let mut needs = self.program.follows(list, place);
                needs.extend(&self.program.commands[*number].waits);
                let mut seen = vec![false; set.len()];
                while let Some(need) = needs.pop() {
                    if std::mem::replace(&mut seen[need], true) {
                        continue;
                    }
                    match self.program.commands.get(need) {
                        Some(marker) if marker.is_traceless() => {
                            let list = &self.lists[marker.list];
                            let place = list.iter().position(|it| *it == need);
                            needs.extend(self.program.follows(list, place.expect("submitted")));
                            needs.extend(&marker.waits);
                        }
                        _ => assert!(
                            ended[need].is_some_and(|end| end < time),
                            "{number} began before {need} ended"
                        ),
                    }
                }
            }
        }
    }

    fn check_end(&self) {
        let set = self.is_set();
        let most = self.program.reference(&self.lists, false);
        let least = self.program.reference(&self.lists, true);
        for number in 0..set.len() {
            let is_small = self.lists.iter().all(|list| list.len() <= WINDOW);
            assert!(most[number] || !set[number], "{number} should never run");
            assert!(set[number] || !least[number], "{number} should have run");
            assert!(
                set[number] || !most[number] || !is_small,
                "{number} could have run"
            );
        }
        for (list, stream) in self.lists.iter().zip(&self.streams) {
            let all = list.iter().all(|number| set[*number]);
            let failed = list.iter().any(|number| {
                let command = &self.program.commands[*number];
                command.kind != Kind::Marker && !matches!(command.behaviour, Behaviour::Fine)
            });
            let outcome = stream.synchronize(Deadline::Now);
            if all {
                assert_eq!(outcome.is_err(), failed);
                assert_eq!(
                    stream.synchronize(Deadline::Now),
                    Ok(true),
                    "an error is reported once"
                );
            } else {
                assert_eq!(outcome, Ok(false));
            }
        }
    }
}

#[test]
fn any_program_runs_in_a_legal_order() {
    silence();
    simulate(|random| {
        let mut program = Program::random(random);
        let device = random.percent(50).then(DeviceEngine::default);
        program.is_ordered = device.is_some();
        let mut run = Run::new(&program, device.as_ref());
        // The calls of each virtual thread, last one first.
        let mut threads = vec![Vec::new(); 1 + random.below(3)];
        for number in (0..run.signals.len()).rev() {
            let thread = random.below(threads.len());
            threads[thread].push(number);
        }
        let pace = 1 + random.below(8);
        while !is_idle(&run.world) || threads.iter().any(|calls| !calls.is_empty()) {
            match random.below(10) {
                choice if choice < pace => {
                    let index = random.below(threads.len());
                    if let Some(number) = threads[index].pop() {
                        run.call(number);
                    }
                }
                9 => run_job(random),
                _ => run.world.step(random),
            }
            if random.percent(10) {
                run.check_visibility();
            }
            if random.percent(5) {
                run_job(random);
            }
        }
        run.check_visibility();
        run.check_log();
        run.check_end();
    });
}

#[test]
fn a_device_executes_in_the_order_of_submission_unless_a_command_is_stuck() {
    silence();
    simulate(|random| {
        let mut program = Program::random(random);
        // A list of its own whose commands wait for the host, which delays no other list.
        let stuck = program.lists;
        program.lists += 1;
        let count = program.commands.len();
        program.host = vec![false];
        program.is_ordered = true;
        for (number, command) in program.commands.iter_mut().enumerate() {
            command.waits.retain(|wait| *wait < number);
            if random.percent(10) {
                (command.list, command.waits) = (stuck, vec![count]);
            }
        }
        for number in 0..count {
            let waits = program.commands[number].waits.clone();
            let is_stuck = |wait: &usize| *wait == count || program.commands[*wait].list == stuck;
            if program.commands[number].list != stuck && waits.iter().any(is_stuck) {
                program.commands[number].waits.clear();
            }
        }
        let device = DeviceEngine::default();
        let mut run = Run::new(&program, Some(&device));
        let mut next = 0;
        while next < count || !is_idle(&run.world) {
            match random.below(3) {
                0 if next < count => {
                    run.call(next);
                    next += 1;
                }
                1 => run_job(random),
                _ => run.world.step(random),
            }
        }
        let expected = program
            .commands
            .iter()
            .enumerate()
            .filter(|(_, command)| command.list != stuck && !command.is_traceless());
        let expected: Vec<Moment> = expected
            .flat_map(|(number, command)| {
                let parts = if command.kind == Kind::Long { 3 } else { 1 };
                (0..parts).flat_map(move |_| [Moment::Begin(number), Moment::End(number)])
            })
            .collect();
        assert_eq!(*run.world.log.lock(), expected);
    });
}

/// Suppresses the messages of deliberate panics.
fn silence() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some("on purpose") {
            before(info);
        }
    }));
}
