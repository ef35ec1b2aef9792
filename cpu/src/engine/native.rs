//! Native commands, which another runtime (the native runtime) executes in its in-order queues.
//!
//! A [`NativeQueue`] is a queue of that runtime with the list of our commands in flight in it. Lock order:
//! `enqueue_lock`, held while a command is enqueued, so that the queue and the list have the same order; then
//! `in_flight`, held for a few instructions; then the locks of signals and streams. The native runtime's callback takes
//! `in_flight`, so `in_flight` is never held in a call to that runtime.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use level_zero_sys as sys;

use super::command::{Executor, Token};
use super::native_wait::{Request, Waiter};
use super::workers::{self, dispatch, in_callback, retire_or_drop};
use crate::abi::result::ZeResult;
use crate::process::sync::Mutex;
use crate::system::{clock, stack};

/// The completion event of an enqueued command.
pub trait NativeEvent: Send + Sync {
    /// Registers `completion` to be called when the command has ended, possibly during this call. `false` when the
    /// runtime refuses.
    fn watch(&self, completion: Completion) -> bool;
    /// Flushes the queue, so that the command is started even if no thread waits for it.
    fn flush(&self);
    /// Waits for it; the calling thread helps to execute it.
    fn wait(&self);
    /// Its start and end in nanoseconds of our clock, once it has ended.
    fn times(&self) -> Option<(u64, u64)>;
}

/// The result of enqueueing a command.
#[derive(Default)]
pub struct Enqueued {
    /// Its completion event; `None` when there was nothing to execute.
    pub event: Option<Arc<dyn NativeEvent>>,
    /// The error that ended the enqueueing of the command or of its remainder.
    pub fault: Option<sys::ze_result_t>,
}

/// An in-order queue of the native runtime, which lives as long as the process.
pub struct NativeQueue {
    index: usize,
    waiter: &'static Waiter,
    /// How many streams it is assigned to.
    streams: AtomicUsize,
    enqueue_lock: Mutex<()>,
    in_flight: Mutex<InFlight>,
}

#[derive(Default)]
struct InFlight {
    /// Commands in flight, the oldest first.
    entries: VecDeque<Entry>,
    /// The position of the first of them.
    first: u64,
    /// Whether a thread is completing commands.
    draining: bool,
    /// The position of the command that a host thread waits for inside the native runtime.
    awaited: Option<u64>,
}

struct Entry {
    /// `None` while the command is being completed.
    token: Option<Token>,
    /// The completion event of the command or, for a marker, of the last native command before it.
    event: Arc<dyn NativeEvent>,
    /// The position of the command that `event` belongs to.
    position: u64,
    started: u64,
    /// The outcome, once the command has ended; a marker has one from the start.
    outcome: Option<ZeResult>,
}

impl NativeQueue {
    /// NativeQueue number `index`, empty.
    pub fn new(index: usize, waiter: &'static Waiter) -> Self {
        Self {
            index,
            waiter,
            streams: AtomicUsize::new(0),
            enqueue_lock: Mutex::default(),
            in_flight: Mutex::default(),
        }
    }

    /// How many streams it is assigned to.
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Assigns it to one more stream.
    pub fn assign(&'static self) -> &'static Self {
        self.streams.fetch_add(1, Ordering::Relaxed);
        self
    }

    /// Undoes [`assign`](Self::assign).
    pub fn unassign(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// The completion event of the last command in flight.
    pub fn last(&self) -> Option<Arc<dyn NativeEvent>> {
        let in_flight = self.in_flight.lock();
        in_flight
            .entries
            .back()
            .map(|entry| Arc::clone(&entry.event))
    }

    /// Enqueues a command to the native runtime.
    pub fn enqueue(&'static self, token: Token) {
        let enqueue_lock = self.enqueue_lock.lock();
        let started = clock::now();
        let enqueued = catch_unwind(AssertUnwindSafe(|| token.operation().enqueue(self.index)));
        let Enqueued { event, fault } = enqueued.unwrap_or_else(|_| Enqueued {
            event: None,
            fault: Some(sys::ZE_RESULT_ERROR_UNKNOWN),
        });
        token.note(fault.map_or(Ok(()), Err));
        let Some(event) = event else {
            drop(enqueue_lock);
            return self.mark(token);
        };
        let mut in_flight = self.in_flight.lock();
        let position = in_flight.first + in_flight.entries.len() as u64;
        let entry = Entry {
            token: None,
            event: Arc::clone(&event),
            position,
            started,
            outcome: None,
        };
        let ready = self.push(&mut in_flight, entry, token);
        drop(in_flight);
        drop(enqueue_lock);
        let completion = || Completion {
            queue: self,
            position,
        };
        if !workers::may_have_callbacks() || !event.watch(completion()) {
            // Without a callback, this thread waits and completes it.
            self.waiter.hold(|| event.wait());
            completion().note(Ok(()));
            self.drain();
        }
        event.flush();
        retire_or_drop(event);
        dispatch(ready);
    }

    /// Completes a marker when all commands in flight are complete.
    pub fn mark(&'static self, token: Token) {
        let mut in_flight = self.in_flight.lock();
        let Some(last) = in_flight.entries.back() else {
            drop(in_flight);
            let now = clock::now();
            return dispatch(token.complete(now, now));
        };
        let entry = Entry {
            token: None,
            event: Arc::clone(&last.event),
            position: last.position,
            started: 0,
            outcome: Some(Ok(())),
        };
        let ready = self.push(&mut in_flight, entry, token);
        drop(in_flight);
        dispatch(ready);
    }

    /// Appends an entry. The executor is published under the lock, since it must not be once the command is complete.
    fn push(&'static self, in_flight: &mut InFlight, entry: Entry, token: Token) -> Vec<Token> {
        if in_flight.entries.is_empty() {
            self.waiter.queue_is_busy();
        }
        let executor = Executor::Native(Native {
            queue: self,
            position: entry.position,
            event: Arc::clone(&entry.event),
        });
        let ready = token.executing(&executor);
        in_flight.entries.push_back(Entry {
            token: Some(token),
            ..entry
        });
        ready
    }

    /// Completes the commands that have ended, in the order of the queue: a thread that sees one complete sees the
    /// earlier ones complete. One thread at a time drains; it also completes commands whose end other threads report
    /// meanwhile.
    fn drain(&self) {
        let mut ready = Vec::new();
        let mut in_flight = self.in_flight.lock();
        if in_flight.draining {
            return;
        }
        in_flight.draining = true;
        while let Some(entry) = in_flight.entries.front_mut()
            && let Some(outcome) = entry.outcome
        {
            let (token, event) = (entry.token.take(), Arc::clone(&entry.event));
            let (position, started) = (entry.position, entry.started);
            let is_marker = position != in_flight.first;
            drop(in_flight);
            if let Some(token) = token {
                token.note(outcome);
                let native = (!is_marker && token.is_timed()).then(|| event.times());
                let (started, ended) = within(native.flatten(), started, clock::now());
                ready.extend(token.complete(started, ended));
            }
            drop(event);
            in_flight = self.in_flight.lock();
            // The entry stays in the list until now, so that a marker that is added meanwhile is completed after it.
            let entry = in_flight.entries.pop_front();
            in_flight.first += 1;
            if in_flight.entries.is_empty() {
                self.waiter.queue_is_idle();
            }
            drop(in_flight);
            if let Some(entry) = entry {
                retire_or_drop(entry.event);
            }
            in_flight = self.in_flight.lock();
        }
        in_flight.draining = false;
        drop(in_flight);
        dispatch(ready);
    }
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

/// Reports the end of a command to its queue.
pub struct Completion {
    queue: &'static NativeQueue,
    position: u64,
}

impl Completion {
    /// Reports that the command has ended. May be called in a callback, as it does not call the native runtime.
    pub fn complete(self, outcome: ZeResult) {
        if self.note(outcome) {
            in_callback(|| self.queue.drain());
        }
    }

    /// Notes the outcome of the command. Returns whether the queue should be drained: not by this thread if a host thread waits
    /// for exactly this command, as that thread resumes after the callback, and drains.
    fn note(&self, outcome: ZeResult) -> bool {
        let mut in_flight = self.queue.in_flight.lock();
        let index = self.position.checked_sub(in_flight.first);
        let entry = index.and_then(|index| in_flight.entries.get_mut(usize::try_from(index).ok()?));
        if let Some(entry) = entry {
            entry.outcome.get_or_insert(outcome);
        }
        let last = in_flight.entries.back().map(|entry| entry.position);
        in_flight.awaited != Some(self.position) || last != in_flight.awaited
    }
}

/// A native command in flight, as waiting threads see it.
#[derive(Clone)]
pub struct Native {
    /// The queue that it is in.
    pub queue: &'static NativeQueue,
    /// The position of the command that `event` belongs to.
    position: u64,
    event: Arc<dyn NativeEvent>,
}

impl Native {
    /// Waits for it inside the native runtime, helping to execute it, and completes it. `false` when another thread
    /// already does so, or when this one could end up executing the commands of other queues, or has a small stack.
    pub fn wait(&self) -> bool {
        // The fake runtime of the simulation needs no stack.
        if !cfg!(test) && !stack::holds_kernels() {
            return false;
        }
        let waited = self.queue.waiter.try_hold(|| {
            self.queue.in_flight.lock().awaited = Some(self.position);
            self.event.wait();
            self.queue.in_flight.lock().awaited = None;
        });
        if waited {
            self.queue.drain();
        }
        waited
    }

    /// Asks for the help of another thread.
    pub fn request_help(&self) -> Request<'static> {
        self.queue.waiter.request()
    }

    /// Tells one command from another.
    pub fn identity(&self) -> (usize, u64) {
        (ptr::from_ref(self.queue) as usize, self.position)
    }
}
