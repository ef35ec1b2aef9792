//! The order in which the operations of one queue or immediate list run.

use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::operation::{Nothing, Operation, Pins};
use super::signal::Signal;
use super::task::{Lane, Task};
use super::workers::dispatch;
use crate::answer::Answer;
use crate::clock::{self, Deadline};
use crate::event::Event;

/// What an operation must wait for among those submitted to the same stream before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last barrier or gate.
    Loose,
    /// Everything.
    After,
    /// The last barrier or gate; and everything later waits for it.
    Gate,
    /// Everything; and everything later waits for it: a barrier.
    Strict,
}

impl Order {
    fn waits_for_all(self) -> bool {
        matches!(self, Self::After | Self::Strict)
    }
}

/// Open signals beyond which the finished ones are swept out.
const SWEEP: usize = 64;

/// A sequence of submissions.
#[derive(Default)]
pub struct Stream {
    state: Mutex<State>,
    lane: Arc<Lane>,
}

#[derive(Default)]
struct State {
    /// The last barrier or gate, which every later submission waits for.
    barrier: Option<Arc<Signal>>,
    /// What else may still be running.
    open: Vec<Arc<Signal>>,
    /// Whether something of that, or that was of it, came after the barrier.
    open_behind_barrier: bool,
}

impl State {
    fn is_idle(&mut self, order: Order) -> bool {
        if self
            .barrier
            .as_ref()
            .is_some_and(|barrier| barrier.is_set())
        {
            self.barrier = None;
        }
        if order.waits_for_all() || self.open.len() > SWEEP {
            self.open.retain(|signal| !signal.is_set());
        }
        self.barrier.is_none() && (!order.waits_for_all() || self.open.is_empty())
    }

    /// Puts a submission, whose end sets `done`, in its place in the order. Returns what it must wait for, the barrier
    /// last, and whether that is implied by the rest.
    fn enter(&mut self, order: Order, done: Arc<Signal>) -> (SmallVec<[Arc<Signal>; 4]>, bool) {
        let mut before = SmallVec::new();
        let mut implied = false;
        if order.waits_for_all() {
            before.extend(self.open.iter().cloned());
            implied = self.open_behind_barrier;
        }
        before.extend(self.barrier.iter().cloned());
        implied &= self.barrier.is_some();
        match order {
            Order::Loose | Order::After => {
                self.open.push(done);
                self.open_behind_barrier = true;
            }
            Order::Gate => {
                self.barrier = Some(done);
                self.open_behind_barrier = false;
            }
            Order::Strict => {
                self.open.clear();
                self.barrier = Some(done);
                self.open_behind_barrier = false;
            }
        }
        (before, implied)
    }
}

impl Stream {
    /// Submits an operation that runs after `waits` and what `order` demands, and then completes `event`.
    ///
    /// It never waits for anything: what cannot run at once is left to the workers.
    ///
    /// # Errors
    /// What [`Operation::pin`] answers; nothing is submitted then.
    pub fn submit<O: Operation + 'static>(
        &self,
        operation: O,
        order: Order,
        waits: &[Arc<Event>],
        event: Option<&Arc<Event>>,
    ) -> Answer {
        let pins = operation.pin()?;
        // Taken before the task begins a new round of its own event, which may be among them.
        let waits: SmallVec<[Arc<Signal>; 4]> = waits.iter().map(|event| event.signal()).collect();
        let launch = operation.as_launch().is_some();
        let mut state = self.state.lock();
        let ready = state.is_idle(order) && waits.iter().all(|signal| signal.is_set());
        if ready && !launch && operation.is_short() {
            self.run_now(&operation, pins, event);
            return Ok(());
        }
        let done = Arc::new(Signal::default());
        let task = Task::new(
            operation.share(),
            pins,
            event.cloned(),
            Arc::clone(&done),
            Arc::clone(&self.lane),
        );
        let (before, implied) = state.enter(order, done);
        let barrier = before.len().checked_sub(1).filter(|_| implied);
        for signal in &waits {
            signal.precede(&task, false);
        }
        for (index, signal) in before.iter().enumerate() {
            signal.precede(&task, Some(index) == barrier);
        }
        drop(state);
        if task.submitted() {
            dispatch(vec![task]);
        }
        Ok(())
    }

    /// Everything submitted later runs after everything submitted before.
    ///
    /// # Errors
    /// None that is known.
    pub fn barrier(&self) -> Answer {
        if self.state.lock().open.is_empty() {
            return Ok(()); // What there is, is behind a barrier.
        }
        self.submit(Nothing, Order::Strict, &[], None)
    }

    /// Waits until everything submitted before the call is done; `false` when the deadline passes first.
    ///
    /// # Errors
    /// The first error of an operation since the last call.
    pub fn synchronize(&self, deadline: Deadline) -> Answer<bool> {
        let open: Vec<Arc<Signal>> = {
            let mut state = self.state.lock();
            if state.is_idle(Order::Strict) {
                drop(state);
                return self.lane.fault.take().map(|()| true);
            }
            state.barrier.iter().chain(&state.open).cloned().collect()
        };
        if !open.iter().all(|signal| signal.wait(deadline)) {
            return Ok(false);
        }
        self.lane.fault.take().map(|()| true)
    }

    fn run_now(&self, operation: &impl Operation, pins: Pins, event: Option<&Arc<Event>>) {
        let timed = event.filter(|event| event.is_timed());
        let started = timed.map_or(0, |_| clock::now());
        for part in 0..operation.parts().max(1) {
            if let Err(code) = operation.run(part) {
                self.lane.fault.note(code);
            }
        }
        drop(pins);
        if let Some(event) = event {
            let ended = timed.map_or(0, |_| clock::now());
            event.complete_at_once(started, ended);
        }
    }
}
