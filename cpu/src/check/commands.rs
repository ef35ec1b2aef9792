//! The commands that the host has submitted and not yet waited for, and what is ordered before what.
//!
//! A command is ordered after those that its stream, its wait list and the events of these imply. Whether it has already
//! been executed does not count, only whether the program could know: so a finding does not depend on timing. A command
//! leaves the table when the host has waited for it, or for a command after it.
//!
//! A command that waits for a signal that no submitted command sets is held, and so are those after it: until the host, or a
//! command submitted later, sets that signal, it cannot run, and the host may access its memory. Its predecessors are known only
//! then, and so are the races with it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use zeusm_process::{Local, Mutex};

use super::finding::{Finding, Kind};
use super::stack::Stack;
use super::uses::{Place, Uses, Wait};
use super::watch::Watch;
use super::{repeats, report, table, threads};

/// The most commands in the table; the oldest leave it.
const MOST: usize = 512;
/// The most events and streams whose commands are known.
const MOST_KNOWN: usize = 1 << 14;

/// Numbers of commands.
type Set = BTreeSet<u64>;

/// Signals.
type Signals = BTreeSet<usize>;

#[derive(Default)]
struct Commands {
    next: u64,
    pending: BTreeMap<u64, Command>,
    streams: HashMap<usize, Stream>,
    /// By signal: the command that sets it, and those before that.
    events: HashMap<usize, Set>,
    /// The allocations that the host must not access before it has waited.
    restricted: Vec<Arc<Watch>>,
}

struct Command {
    uses: Uses,
    stack: Stack,
    thread: i32,
    /// What it sets.
    signal: Option<usize>,
    /// Those before it.
    before: Set,
    /// The open signals that it waits for, or a command before it.
    held: Signals,
}

/// The place of a new command among the others.
#[derive(Default)]
struct Ordered {
    /// Those before it.
    before: Set,
    /// Those before it, and itself.
    with_it: Set,
    held: Signals,
}

#[derive(Default)]
struct Stream {
    /// What all later commands follow.
    barrier: Set,
    /// All commands, and those before them.
    all: Set,
}

static COMMANDS: Local<Mutex<Commands>> = Local::new();

/// A command is being submitted, which waits for the signals `waits`. `promise` promises the signal that it sets, and returns
/// it. Both are called with the table's lock: other threads see the promise and the command at once.
pub fn submit(
    place: Place,
    waits: impl Iterator<Item = Wait>,
    promise: impl FnOnce() -> Option<usize>,
    uses: impl FnOnce() -> Uses,
) {
    repeats::note_call();
    threads::note_host_thread();
    let uses = uses();
    if let Some(address) = uses.overlap() {
        let message = format!("the source and the destination of {} overlap", uses.what);
        report::add(Finding::here(Kind::Race, message).about(address, table::find(address)));
    }
    let stack = if uses.what.is_empty() {
        Stack::default()
    } else {
        Stack::capture()
    };
    let mut commands = COMMANDS.get_or_default().lock();
    let (ordered, signal) = commands.order(place, waits, promise);
    // Those that have waited for its signal are after it.
    let after = signal.map(|signal| commands.resolve_signal(signal, &ordered));
    let mut new = after.unwrap_or_default();
    new.insert(commands.next);
    commands.add(Command {
        uses,
        stack,
        thread: threads::thread_id(),
        signal,
        before: ordered.before,
        held: ordered.held,
    });
    let races = commands.races(&new);
    drop(commands);
    races.into_iter().for_each(report::add);
}

/// The host is about to set a signal. `promise` promises that, for the threads that submit commands before it is set.
pub fn host_signals(signal: usize, promise: impl FnOnce()) {
    let mut commands = COMMANDS.get_or_default().lock();
    promise();
    commands.events.remove(&signal);
    let new = commands.resolve_signal(signal, &Ordered::default());
    let races = commands.races(&new);
    drop(commands);
    races.into_iter().for_each(report::add);
}

/// The host resets a signal, which stands for no command any more. Whether a command may still have to set it.
pub fn host_resets(signal: usize) -> bool {
    let mut commands = COMMANDS.get_or_default().lock();
    commands.events.remove(&signal);
    let mut pending = commands.pending.values();
    pending.any(|command| command.signal == Some(signal))
}

/// The host has waited for a signal.
pub fn waited_for_signal(signal: usize) {
    let mut commands = COMMANDS.get_or_default().lock();
    if let Some(done) = commands.events.remove(&signal) {
        commands.complete(&done);
    }
}

/// The host has waited for all commands of a stream.
pub fn waited_for_stream(stream: usize) {
    let mut commands = COMMANDS.get_or_default().lock();
    if let Some(done) = commands.streams.remove(&stream) {
        commands.complete(&done.all);
    }
}

/// A command in the table that accesses the allocation: what it is and where it was submitted.
pub fn using(watch: &Watch) -> Option<(String, Stack)> {
    let commands = COMMANDS.get_or_default().lock();
    let mut pending = commands.pending.values();
    let command = pending.find(|command| command.uses.touches(&watch.bytes()));
    command.map(Command::told)
}

/// The last command in the table that may write the byte at `address` of the allocation. A handler of a fault may call it, as no
/// memory of the program is accessed with the table's lock.
pub fn writing(watch: &Watch, address: usize) -> Option<(String, Stack)> {
    let commands = COMMANDS.get_or_default().lock();
    let mut pending = commands.pending.values().rev();
    let command = pending.find(|command| command.may_write(address, &watch.bytes()));
    command.map(Command::told)
}

/// The kernels in the table that may have made an access beside `watch`: those with a pointer to it, else all.
pub fn kernels(watch: &Watch) -> Vec<(String, Stack)> {
    const NAMED: usize = 4;
    let commands = COMMANDS.get_or_default().lock();
    let pending = commands.pending.values().rev();
    let mut kernels: Vec<_> = pending.filter(|it| it.uses.is_kernel()).collect();
    let is_close = |it: &&Command| it.uses.touches(&watch.bytes());
    if kernels.iter().any(is_close) {
        kernels.retain(is_close);
    }
    kernels.into_iter().take(NAMED).map(Command::told).collect()
}

impl Command {
    /// What it is, and where it was submitted.
    fn told(&self) -> (String, Stack) {
        (self.uses.what.clone(), self.stack.clone())
    }

    /// Whether it can run, and may write the byte at `address` of the allocation `range`.
    fn may_write(&self, address: usize, range: &Range<usize>) -> bool {
        self.held.is_empty() && self.uses.may_write(address, range)
    }
}

impl Commands {
    /// Gives the next command its number, and finds what is before it and which signal it sets.
    fn order(
        &mut self,
        place: Place,
        waits: impl Iterator<Item = Wait>,
        promise: impl FnOnce() -> Option<usize>,
    ) -> (Ordered, Option<usize>) {
        self.forget_old();
        self.next += 1;
        let stream = self.streams.entry(place.stream).or_default();
        let mut before = if place.follows_all {
            stream.all.clone()
        } else {
            stream.barrier.clone()
        };
        let mut held = Signals::new();
        for wait in waits {
            before.extend(self.events.get(&wait.signal).into_iter().flatten());
            held.extend(wait.is_open.then_some(wait.signal));
        }
        before.retain(|number| self.pending.contains_key(number));
        held.extend(before.iter().flat_map(|it| &self.pending[it].held));
        let mut with_it = before.clone();
        with_it.insert(self.next);
        stream
            .all
            .retain(|number| self.pending.contains_key(number));
        stream.all.extend(&with_it);
        if place.holds_later {
            stream
                .barrier
                .retain(|number| self.pending.contains_key(number));
            stream.barrier.extend(&with_it);
        }
        let signal = promise();
        if let Some(signal) = signal {
            self.events.insert(signal, with_it.clone());
        }
        let ordered = Ordered {
            before,
            with_it,
            held,
        };
        (ordered, signal)
    }

    /// Forgets the events and streams without commands in the table, among them those that are destroyed.
    fn forget_old(&mut self) {
        let is_full = |all: &Self, most| all.events.len() + all.streams.len() > most;
        if !is_full(self, MOST_KNOWN) {
            return;
        }
        let pending = &self.pending;
        let counts = |set: &Set| set.iter().any(|number| pending.contains_key(number));
        self.events.retain(|_, set| counts(set));
        self.streams.retain(|_, stream| counts(&stream.all));
        if is_full(self, MOST_KNOWN / 2) {
            self.events.clear();
        }
    }

    /// The first race of each of the commands `new`, those of which can run that could not before: with another one that can run,
    /// in no order with it.
    fn races(&self, new: &Set) -> Vec<Finding> {
        let can_run = |(_, command): &(&u64, &Command)| command.held.is_empty();
        let race = |number: &u64| {
            let (_, one) = self.pending.get_key_value(number).filter(can_run)?;
            self.pending.iter().filter(can_run).find_map(|(other, it)| {
                // Two new ones are compared once.
                let is_compared = new.contains(other) && other >= number;
                if is_compared || one.before.contains(other) || it.before.contains(number) {
                    return None;
                }
                let address = one.uses.conflict(&it.uses)?;
                let (later, earlier) = if number > other { (one, it) } else { (it, one) };
                let (what, other) = (&later.uses.what, &earlier.uses.what);
                let message = format!("{what} and {other} access the same bytes in no order");
                let finding = Finding::at(Kind::Race, message, later.stack.clone(), later.thread)
                    .about(address, table::find(address));
                Some(finding.with(format!("{other} was submitted at"), earlier.stack.clone()))
            })
        };
        new.iter().filter_map(race).collect()
    }

    /// Enters the command that was ordered last, if it accesses memory or others depend on what holds it.
    fn add(&mut self, command: Command) {
        if command.uses.what.is_empty() && command.held.is_empty() {
            return;
        }
        if command.held.is_empty() {
            self.restrict(&command.uses);
        }
        self.pending.insert(self.next, command);
        if self.pending.len() > MOST {
            self.pending.pop_first();
        }
    }

    /// A signal is no longer open, as the command `by` sets it. Those that it held, which are returned, are after that.
    fn resolve_signal(&mut self, signal: usize, by: &Ordered) -> Set {
        let mut after = Set::new();
        let mut free = Vec::new();
        for (number, command) in &mut self.pending {
            if command.held.remove(&signal) {
                after.insert(*number);
                command.before.extend(&by.with_it);
                command.held.extend(&by.held);
                if command.held.is_empty() {
                    free.push(command.uses.clone());
                }
            }
        }
        free.iter().for_each(|uses| self.restrict(uses));
        if after.is_empty() || by.with_it.is_empty() {
            return after;
        }
        let streams = self.streams.values_mut();
        let sets = streams.flat_map(|stream| [&mut stream.barrier, &mut stream.all]);
        for set in sets.chain(self.events.values_mut()) {
            if !set.is_disjoint(&after) {
                set.extend(&by.with_it);
            }
        }
        after
    }

    /// Keeps the host from the shared and host memory that a command may write.
    fn restrict(&mut self, uses: &Uses) {
        let places = uses
            .writes
            .iter()
            .map(|range| range.start)
            .chain(uses.pointers.iter().copied());
        let mut done = 0..0;
        for place in places {
            // The rows of a box are in one allocation.
            if !done.contains(&place)
                && let Some(watch) = table::find(place)
            {
                done = watch.whole.clone();
                if watch.restrict() {
                    self.restricted.push(watch);
                }
            }
        }
    }

    fn complete(&mut self, done: &Set) {
        done.iter().for_each(|number| {
            self.pending.remove(number);
        });
        let pending = &self.pending;
        self.restricted.retain(|watch| {
            let bytes = watch.bytes();
            let still = pending.values().any(|command| command.uses.touches(&bytes));
            if !still {
                watch.permit();
            }
            still
        });
    }
}

#[cfg(test)]
mod tests;
