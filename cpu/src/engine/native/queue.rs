//! Native commands, which another runtime (the native runtime) executes in its in-order queues.
//!
//! A [`NativeQueue`] is a queue of that runtime with the list of our commands in flight in it. Lock order:
//! `enqueue_lock`, held while a command is enqueued, so that the queue and the list have the same order; then
//! `in_flight`, held for a few instructions; then the locks of signals and streams. The native runtime's callback takes
//! `in_flight`, so `in_flight` is never held in a call to that runtime.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use level_zero_sys as sys;
use zeusm_process::{Mutex, MutexGuard};

use super::in_flight::InFlight;
use super::wait::Waiter;
use crate::abi::result::ZeResult;
use crate::engine::order::retired::in_callback;
use crate::engine::order::{
    Enqueued, Executor, InOrder, NATIVE_QUEUES, Native, NativeEvent, QueueNumber, ReadyList,
    Request, Token, dispatch, execution,
};
use crate::opencl::Call;
use crate::system::clock::{self, Deadline};
use crate::system::stack;

/// An in-order queue of the native runtime, which lives as long as the process.
pub struct NativeQueue {
    number: QueueNumber,
    waiter: &'static Waiter,
    enqueue_lock: Mutex<()>,
    in_flight: Mutex<InFlight>,
}

impl NativeQueue {
    /// NativeQueue number `number`, empty.
    pub fn new(number: QueueNumber, waiter: &'static Waiter) -> Self {
        Self {
            number,
            waiter,
            enqueue_lock: Mutex::default(),
            in_flight: Mutex::default(),
        }
    }

    /// The completion event of the last command that the native runtime executes.
    pub fn last(&self) -> Option<Arc<dyn NativeEvent>> {
        self.in_flight.lock().last()
    }

    /// Enqueues a command to the native runtime.
    pub fn enqueue(&'static self, mut token: Box<Token>) {
        let enqueue_lock = self.enqueue_lock.lock();
        // From the enqueueing on, a fork waits for the command. While the process exits, there is no call.
        let call = Call::begin();
        let started = token.now_if_timed();
        let enqueue = || token.operation.enqueue(self.number.0);
        let enqueued = catch_unwind(AssertUnwindSafe(enqueue));
        let Enqueued { event, outcome } = enqueued.unwrap_or(Enqueued {
            event: None,
            outcome: Err(sys::ZE_RESULT_ERROR_UNKNOWN),
        });
        token.note(outcome);
        let Some(event) = event else {
            drop((call, enqueue_lock));
            return self.mark(token);
        };
        token.event = Some(Arc::clone(&event));
        let mut in_flight = self.in_flight.lock();
        let position = in_flight.end();
        let ready = self.executing(&token, &in_flight);
        in_flight.push(token, started);
        drop((in_flight, enqueue_lock));
        self.watch(position, &*event);
        event.flush();
        drop((call, event));
        dispatch(ready);
    }

    /// Has the end of a command reported.
    fn watch(&'static self, position: u64, event: &dyn NativeEvent) {
        let key = self.native(position).key();
        if !execution().may_have_callbacks() || !event.watch(key) {
            // Without a callback, this thread waits and completes it.
            event.wait();
            let mut in_flight = self.in_flight.lock();
            in_flight.note(position, Ok(()));
            self.drain(in_flight);
        }
    }

    /// The command at a position.
    fn native(&'static self, position: u64) -> Native {
        Native {
            queue: self,
            position,
        }
    }

    /// Completes a marker when all commands in flight are complete.
    pub fn mark(&'static self, token: Box<Token>) {
        let mut in_flight = self.in_flight.lock();
        if in_flight.is_empty() {
            drop(in_flight);
            let now = token.now_if_timed();
            return dispatch(token.complete(now, now));
        }
        let ready = self.executing(&token, &in_flight);
        in_flight.push(token, 0);
        drop(in_flight);
        dispatch(ready);
    }

    /// Publishes the executor of the command that is appended next: under the lock, since it must not be once the command is
    /// complete. Returns the commands that may be enqueued behind it.
    fn executing(&'static self, token: &Token, in_flight: &InFlight) -> ReadyList {
        if in_flight.is_empty() {
            self.waiter.queue_is_busy();
        }
        token.executing(&Executor::Native(self.native(in_flight.end())))
    }

    /// Completes the commands that have ended, in the order of the queue: a thread that sees one complete sees the
    /// earlier ones complete. One thread at a time drains; it also completes commands whose end other threads report
    /// meanwhile.
    fn drain(&'static self, mut in_flight: MutexGuard<'static, InFlight>) {
        if !in_flight.begin_draining() {
            return;
        }
        let mut ready = ReadyList::new();
        while let Some((token, outcome, started)) = in_flight.front() {
            drop(in_flight);
            ready.extend(complete(token, outcome, started));
            in_flight = self.in_flight.lock();
            // The entry stays in the list until now, so that a marker that is added meanwhile is completed after it.
            in_flight.pop();
            if in_flight.is_empty() {
                self.waiter.queue_is_idle();
            }
        }
        drop(in_flight);
        dispatch(ready);
    }
}

/// Completes the oldest command of a queue. Returns the commands that are ready now.
fn complete(token: Box<Token>, outcome: ZeResult, started: u64) -> ReadyList {
    token.note(outcome);
    let (started, ended) = if token.is_timed() {
        let native = token.event.as_ref().and_then(|event| event.times());
        within(native, started, clock::now())
    } else {
        (0, 0)
    };
    token.complete(started, ended)
}

/// The times of a native command, clamped to the interval measured with our clock, which is taken where the native runtime has
/// another clock, as PoCL's.
fn within(native: Option<(u64, u64)>, started: u64, ended: u64) -> (u64, u64) {
    let started = if started == 0 { ended } else { started };
    let ours = native.filter(|(from, to)| *from <= ended && started <= *to);
    ours.map_or((started, ended), |(from, to)| {
        let from = from.clamp(started, ended);
        (from, to.clamp(from, ended))
    })
}

impl InOrder for NativeQueue {
    fn number(&self) -> QueueNumber {
        self.number
    }

    fn ended(&'static self, position: u64, outcome: ZeResult) {
        let mut in_flight = self.in_flight.lock();
        if in_flight.note(position, outcome) {
            in_callback(|| self.drain(in_flight));
        }
    }

    /// Waits for it inside the native runtime, helping to execute it, and completes it. `false` when another thread
    /// already does so, when a kernel may take longer than until the deadline, or when this thread could end up executing the
    /// commands of other queues, or has a small stack.
    fn help(&'static self, position: u64, deadline: Deadline) -> bool {
        // The fake runtime of the simulation needs no stack.
        let may_execute = cfg!(test) || stack::holds_kernels();
        if !matches!(deadline, Deadline::Never) || !may_execute {
            return false;
        }
        let issued = self.in_flight.lock().issued_before(position);
        let has_ended = issued.is_none_or(|(position, event)| {
            self.waiter.try_hold(|| {
                self.in_flight.lock().await_inside(Some(position));
                event.wait();
                self.in_flight.lock().await_inside(None);
            })
        });
        if has_ended {
            self.drain(self.in_flight.lock());
        }
        has_ended
    }

    fn request_help(&'static self) -> Request {
        self.waiter.request()
    }
}

/// The native queues, which live as long as the process.
pub struct NativeQueues {
    all: &'static [NativeQueue; NATIVE_QUEUES],
    assigned: AtomicUsize,
}

impl NativeQueues {
    /// New ones, without commands.
    pub fn new() -> Self {
        let waiter: &'static Waiter = Box::leak(Box::default());
        let queues = std::array::from_fn(|number| NativeQueue::new(QueueNumber(number), waiter));
        let all: &'static _ = Box::leak(Box::new(queues));
        waiter.look_at(|| all.iter().find_map(NativeQueue::last));
        Self {
            all,
            assigned: AtomicUsize::new(0),
        }
    }

    /// The queue with a number.
    pub fn get(&self, number: QueueNumber) -> &'static NativeQueue {
        &self.all[number.0 % NATIVE_QUEUES]
    }

    /// The queue for another sequence: one after another.
    pub fn next(&self) -> QueueNumber {
        QueueNumber(self.assigned.fetch_add(1, Ordering::Relaxed) % NATIVE_QUEUES)
    }
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn the_times_of_another_clock_are_not_those_of_a_command() {
        assert_eq!(within(Some((12, 18)), 10, 20), (12, 18));
        assert_eq!(within(Some((8, 18)), 10, 20), (10, 18));
        assert_eq!(within(Some((1, 7)), 10, 20), (10, 20));
        assert_eq!(within(Some((501, 507)), 10, 20), (10, 20));
        assert_eq!(within(None, 10, 20), (10, 20));
        assert_eq!(within(None, 0, 20), (20, 20));
    }
}
