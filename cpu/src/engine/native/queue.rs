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
use zeusm_process::Mutex;

use super::in_flight::{Front, InFlight};
use super::wait::Waiter;
use crate::abi::result::ZeResult;
use crate::engine::order::retired::{in_callback, retire_or_drop};
use crate::engine::order::{
    Completion, Enqueued, Executor, Help, NativeEvent, Operation, QueueNumber, Ready, Request,
    Token, dispatch, execution,
};
use crate::system::clock::{self, Deadline};
use crate::system::stack;

/// An in-order queue of the native runtime, which lives as long as the process.
pub struct NativeQueue {
    number: QueueNumber,
    waiter: &'static Waiter,
    /// How many streams it is assigned to.
    streams: AtomicUsize,
    enqueue_lock: Mutex<()>,
    in_flight: Mutex<InFlight>,
}

impl NativeQueue {
    /// NativeQueue number `number`, empty.
    pub fn new(number: QueueNumber, waiter: &'static Waiter) -> Self {
        Self {
            number,
            waiter,
            streams: AtomicUsize::new(0),
            enqueue_lock: Mutex::default(),
            in_flight: Mutex::default(),
        }
    }

    /// Its number.
    pub fn number(&self) -> QueueNumber {
        self.number
    }

    /// How many streams it is assigned to.
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Assigns it to one more stream.
    pub fn assign(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// Undoes [`assign`](Self::assign).
    pub fn unassign(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// The completion event of the last command that the native runtime executes.
    pub fn last(&self) -> Option<Arc<dyn NativeEvent>> {
        self.in_flight.lock().last()
    }

    /// Enqueues a command to the native runtime.
    pub fn enqueue(&'static self, token: Token) {
        let enqueue_lock = self.enqueue_lock.lock();
        let started = clock::now();
        let (event, outcome) = issue(&**token.operation(), self.number);
        token.note(outcome);
        let Some(event) = event else {
            drop(enqueue_lock);
            return self.mark(token);
        };
        let mut in_flight = self.in_flight.lock();
        let position = in_flight.end();
        let ready = self.executing(&token, &in_flight);
        in_flight.push(token, Arc::clone(&event), started);
        drop((in_flight, enqueue_lock));
        self.watch(position, &*event);
        event.flush();
        retire_or_drop(event);
        dispatch(ready);
    }

    /// Has the end of a command reported.
    fn watch(&'static self, position: u64, event: &dyn NativeEvent) {
        let completion = || Box::new(move |outcome| self.ended(position, outcome)) as Completion;
        if !execution().may_have_callbacks() || !event.watch(completion()) {
            // Without a callback, this thread waits and completes it.
            self.waiter.hold(|| event.wait());
            self.in_flight.lock().note(position, Ok(()));
            self.drain();
        }
    }

    /// The command at a position has ended, as a callback of the native runtime tells.
    fn ended(&'static self, position: u64, outcome: ZeResult) {
        let should_drain = self.in_flight.lock().note(position, outcome);
        if should_drain {
            in_callback(|| self.drain());
        }
    }

    /// Completes a marker when all commands in flight are complete.
    pub fn mark(&'static self, token: Token) {
        let mut in_flight = self.in_flight.lock();
        if in_flight.is_empty() {
            drop(in_flight);
            let now = token.now_if_timed();
            return dispatch(token.complete(now, now));
        }
        let ready = self.executing(&token, &in_flight);
        in_flight.push_marker(token);
        drop(in_flight);
        dispatch(ready);
    }

    /// Publishes the executor of the command that is appended next: under the lock, since it must not be once the command is
    /// complete. Returns the commands that may be enqueued behind it.
    fn executing(&'static self, token: &Token, in_flight: &InFlight) -> Vec<Ready> {
        if in_flight.is_empty() {
            self.waiter.queue_is_busy();
        }
        let position = in_flight.end();
        let native = Native {
            queue: self,
            position,
        };
        token.executing(&(Arc::new(native) as Executor))
    }

    /// Completes the commands that have ended, in the order of the queue: a thread that sees one complete sees the
    /// earlier ones complete. One thread at a time drains; it also completes commands whose end other threads report
    /// meanwhile.
    fn drain(&'static self) {
        let mut in_flight = self.in_flight.lock();
        if !in_flight.begin_draining() {
            return;
        }
        let mut ready = Vec::new();
        while let Some(front) = in_flight.front() {
            drop(in_flight);
            ready.append(&mut complete(front));
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

/// Enqueues an operation to a queue of the native runtime. Returns its completion event, if there was something to
/// execute, and the error that ended the enqueueing.
fn issue(
    operation: &dyn Operation,
    queue: QueueNumber,
) -> (Option<Arc<dyn NativeEvent>>, ZeResult) {
    let enqueued = catch_unwind(AssertUnwindSafe(|| operation.enqueue(queue.0)));
    let Enqueued { event, fault } = enqueued.unwrap_or_else(|_| Enqueued {
        event: None,
        fault: Some(sys::ZE_RESULT_ERROR_UNKNOWN),
    });
    (event, fault.map_or(Ok(()), Err))
}

/// Completes the oldest command of a queue. Returns the commands that are ready now.
fn complete(front: Front) -> Vec<Ready> {
    let Front {
        token,
        outcome,
        event,
        started,
    } = front;
    token.note(outcome);
    let (started, ended) = if token.is_timed() {
        let native = event.as_ref().and_then(|event| event.times());
        within(native, started, clock::now())
    } else {
        (0, 0)
    };
    let ready = token.complete(started, ended);
    if let Some(event) = event {
        retire_or_drop(event);
    }
    ready
}

/// The times of a native command, clamped to the interval measured with our clock, in case the native runtime uses
/// another clock.
fn within(native: Option<(u64, u64)>, started: u64, ended: u64) -> (u64, u64) {
    let started = if started == 0 { ended } else { started };
    native.map_or((started, ended), |(from, to)| {
        let from = from.clamp(started, ended);
        (from, to.clamp(from, ended))
    })
}

/// A native command in flight, as threads that wait for it see it.
struct Native {
    queue: &'static NativeQueue,
    position: u64,
}

impl Native {
    /// Waits for it inside the native runtime, helping to execute it, and completes it. `false` when another thread
    /// already does so, or when this one could end up executing the commands of other queues, or has a small stack.
    fn wait(&self) -> bool {
        // The fake runtime of the simulation needs no stack.
        if !cfg!(test) && !stack::holds_kernels() {
            return false;
        }
        let (queue, position) = (self.queue, self.position);
        let issued = queue.in_flight.lock().issued_before(position);
        let has_ended = issued.is_none_or(|(position, event)| {
            queue.waiter.try_hold(|| {
                queue.in_flight.lock().await_inside(Some(position));
                event.wait();
                queue.in_flight.lock().await_inside(None);
            })
        });
        if has_ended {
            queue.drain();
        }
        has_ended
    }
}

impl Help for Native {
    fn help(&self, deadline: Deadline) -> bool {
        // A kernel may take any time.
        matches!(deadline, Deadline::Never) && self.wait()
    }

    fn queue(&self) -> Option<QueueNumber> {
        Some(self.queue.number)
    }

    fn request_help(&self) -> Option<Request> {
        Some(self.queue.waiter.request())
    }
}
