//! Streams: the order in which the commands of one queue or immediate list are executed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::behind::Behind;
use super::changes::{Changes, Report};
use super::operation::{Kind, Nothing, Operation, Order, Pins, run_all};
use super::priority::Priority;
use super::ready::{ReadyList, dispatch};
use super::retired::release_retired;
use super::sequence::{Sequence, Token};
use super::signal::{Identity, Signal};
use super::slots::Stage;
use crate::abi::result::ZeResult;
use crate::check;
use crate::system::clock::{self, Deadline};

/// The engine of a device: it executes the commands of all queues and lists of the device one after another, in the order of
/// their submission.
#[derive(Clone, Default)]
pub struct DeviceEngine {
    sequence: Arc<Sequence>,
    /// Whether a command that waits for the host blocks it.
    is_blocked: bool,
}

impl DeviceEngine {
    /// An engine that a command which waits for the host, or for a later command, blocks, as Intel's driver's.
    #[must_use]
    pub fn that_waits() -> Self {
        Self {
            is_blocked: true,
            ..Self::default()
        }
    }
}

/// A sequence of commands.
#[derive(Default)]
pub struct Stream {
    /// Tells it from other queues and lists.
    identity: Identity,
    sequence: Arc<Sequence>,
    /// The device's engine. Unless that may be blocked, only those commands are there that cannot be stuck: all signals of their
    /// wait lists are set, or will be by commands in engines. The others, which wait for the host, for another process or for a
    /// command that is not submitted yet, and those that follow them, are in the stream itself, so that they delay no other stream.
    engine: Option<DeviceEngine>,
    /// Whether each command follows all earlier ones, as in the engine of a GPU, whose commands wait where they are. SYCL's adapter
    /// relies on that: it waits for the last command of a list only.
    is_ordered: bool,
}

impl Stream {
    /// The stream of a new queue or immediate list. The device's engine, if there is one, executes its commands; unless that
    /// may be blocked, streams of high and low priority have none, as engines keep the order of submission.
    #[must_use]
    pub fn new(engine: Option<&DeviceEngine>, priority: Priority) -> Self {
        let has_part = |engine: &&DeviceEngine| engine.is_blocked || priority == Priority::Normal;
        Self {
            identity: Identity::default(),
            sequence: Arc::new(Sequence::new(priority)),
            engine: engine.filter(has_part).cloned(),
            is_ordered: engine.is_some(),
        }
    }

    /// Submits an operation that follows the commands that `order` determines, then waits for `waits`, and sets
    /// `signal` on completion, which it promises. `pins` is the result of [`Operation::pin`].
    ///
    /// Does not block. The calling thread runs a short operation that is ready.
    pub fn submit(
        &self,
        operation: Arc<dyn Operation>,
        pins: Pins,
        order: Order,
        waits: SmallVec<[Arc<Signal>; 4]>,
        signal: Option<Arc<Signal>>,
    ) {
        release_retired();
        if check::is_on() {
            self.tell_checker(order, &waits, signal.as_ref(), || operation.uses());
        } else if let Some(signal) = &signal {
            signal.promise();
        }
        let of_all = order.follows_all();
        let report = Report { signal, of_all };
        let order = match self.is_ordered {
            true => Order::Barrier,
            false => order,
        };
        let Some(DeviceEngine {
            sequence: engine,
            is_blocked,
        }) = &self.engine
        else {
            self.enter(&self.sequence, operation, pins, order, waits, report);
            return;
        };
        let entered = self.sequence.entered();
        let is_alone = self.sequence.is_idle();
        let is_stuck = || !waits.iter().all(|signal| signal.is_expected());
        if *is_blocked || is_alone && !is_stuck() {
            let end = self.enter(engine, operation, pins, order, waits, report);
            entered.fetch_max(end, Ordering::Relaxed);
            return;
        }
        if is_alone && !engine.has_finished(entered.load(Ordering::Relaxed)) {
            self.follow(engine);
        }
        self.enter(&self.sequence, operation, pins, order, waits, report);
    }

    /// Makes the next commands of the stream follow those that are in the engine. These markers leave the errors of the
    /// stream's commands to the program's next barrier or fence.
    fn follow(&self, engine: &Arc<Sequence>) {
        let (before, order) = (Arc::new(Signal::default()), Order::Barrier);
        let marker = |sequence, waits, signal| {
            let of_all = false;
            let report = Report { signal, of_all };
            self.enter(
                sequence,
                Arc::new(Nothing),
                Pins::new(),
                order,
                waits,
                report,
            );
        };
        marker(engine, SmallVec::new(), Some(Arc::clone(&before)));
        marker(&self.sequence, SmallVec::from_iter([before]), None);
    }

    /// Submits an operation to a sequence of commands: this stream's, or the engine's. Returns the number of the next command.
    fn enter(
        &self,
        sequence: &Arc<Sequence>,
        operation: Arc<dyn Operation>,
        pins: Pins,
        order: Order,
        waits: SmallVec<[Arc<Signal>; 4]>,
        report: Report,
    ) -> u64 {
        let (kind, reset) = (operation.kind(), operation.resets());
        let in_engine = !Arc::ptr_eq(sequence, &self.sequence);
        let mut state = sequence.lock();
        // Under the engine's lock: a command that is admitted because this one will set its signal must enter behind it, and
        // the changes are counted in the order in which they will be made.
        let concludes = kind == Kind::Marker && report.of_all;
        let changes = Changes::new(reset, report.signal, in_engine, concludes);
        let end = state.end() + 1;
        if state.is_empty()
            && matches!(kind, Kind::Marker | Kind::Short)
            && waits.iter().all(|signal| signal.is_set())
        {
            let number = sequence.push(&mut state, order, kind, Stage::Released(None));
            drop(state);
            self.run_now(sequence, number, &*operation, pins, changes);
            return end;
        }
        let token = Box::new(Token {
            sequence: None,
            number: state.end(),
            operation,
            kind,
            pins,
            waits: waits.into_iter(),
            shared: None,
            changes,
            faults: Arc::clone(self.sequence.faults()),
            queue: None,
            event: None,
        });
        sequence.push(&mut state, order, kind, Stage::Held(token));
        let mut ready = ReadyList::new();
        sequence.release(&mut state, &mut ready);
        if let Some((number, held)) = state.last_behind_native()
            && let Some(signal) = held.changes.signal()
        {
            // Threads that wait for it help with those; the one that completes them goes on with what follows.
            signal.expect(Behind::executor(sequence, number));
        }
        drop(state);
        dispatch(ready);
        end
    }

    /// Tells the checker what is ordered before a command, and promises the signal that it sets.
    fn tell_checker(
        &self,
        order: Order,
        waits: &[Arc<Signal>],
        signal: Option<&Arc<Signal>>,
        uses: impl FnOnce() -> check::Uses,
    ) {
        let place = check::Place {
            stream: self.identity.0,
            follows_all: order.follows_all(),
            holds_later: order.holds_later(),
        };
        let waits = waits.iter().map(|signal| check::Wait {
            signal: signal.identity(),
            is_open: signal.is_open(),
        });
        let promise = || {
            signal.map(|signal| {
                signal.promise();
                signal.identity()
            })
        };
        check::submit(place, waits, promise, uses);
    }

    /// Runs command `number` of a sequence, which is ready, without making a token of it.
    fn run_now(
        &self,
        sequence: &Arc<Sequence>,
        number: u64,
        operation: &dyn Operation,
        pins: Pins,
        mut changes: Changes,
    ) {
        let timed = changes.is_timed();
        let now = || if timed { clock::now() } else { 0 };
        let started = now();
        let (outcome, faults) = (run_all(operation), self.sequence.faults());
        changes.note(outcome);
        faults.note(outcome);
        drop(pins);
        changes.conclude(faults);
        let mut ready = changes.make(started, now());
        sequence.complete(number, &mut ready);
        dispatch(ready);
    }

    /// Submits a barrier: all later commands follow all earlier ones.
    pub fn barrier(&self) {
        if check::is_on() {
            self.tell_checker(Order::Barrier, &[], None, check::Uses::default);
        }
        // Complete commands need no barrier, nor do those in an engine.
        if !self.sequence.is_idle() {
            let (order, waits) = (Order::Barrier, SmallVec::new());
            self.submit(Arc::new(Nothing), Pins::new(), order, waits, None);
        }
    }

    /// Waits until all commands submitted before the call are complete; `false` when the deadline passes first.
    ///
    /// # Errors
    /// The first error of a command since the last call that returned `true`.
    pub fn synchronize(&self, deadline: Deadline) -> ZeResult<bool> {
        let in_engine = self.engine.as_ref().is_none_or(|engine| {
            let end = self.sequence.entered().load(Ordering::Relaxed);
            engine.sequence.wait(end, deadline)
        });
        if !in_engine || !self.sequence.wait(u64::MAX, deadline) {
            return Ok(false);
        }
        if check::is_on() {
            check::waited_for_stream(self.identity.0);
        }
        self.sequence.faults().synchronize().map(|()| true)
    }
}
