//! Native commands: what another runtime executes, in native_queues.
//!
//! A queue is an in-order queue of that runtime, and beside it the list of our commands that are in it. Locks, in the order
//! in which they are taken: `enqueue_lock` while a command is handed to the other runtime, so that both are in the same order;
//! then `in_flight`, for a few instructions; then those of signals and streams. The other runtime's callback takes `in_flight`, so
//! `in_flight` is never held in a call to that runtime.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use level_zero_sys as sys;

use super::command::{Executor, Token};
use super::native_wait::{Request, Waiter};
use super::workers::{dispatch, in_callback, retire_or_drop};
use crate::abi::result::ZeResult;
use crate::process::sync::Mutex;
use crate::system::clock;

/// A command that the other runtime has been given.
pub trait NativeEvent: Send + Sync {
    /// Has `completion` told of its end, which may happen during the call. `false` when the runtime refuses.
    fn watch(&self, completion: Completion) -> bool;
    /// Sees to it that it is begun even if nothing waits for it.
    fn flush(&self);
    /// Waits for its end; the calling thread takes part in the work.
    fn wait(&self);
    /// When it ran, in nanoseconds of our clock, once it has ended.
    fn times(&self) -> Option<(u64, u64)>;
}

/// What came of handing a command to the other runtime.
#[derive(Default)]
pub struct Enqueued {
    /// Its end; `None` when nothing was left to execute.
    pub event: Option<Arc<dyn NativeEvent>>,
    /// Why it, or the rest of it, was refused.
    pub fault: Option<sys::ze_result_t>,
}

/// An in-order queue of the other runtime. Lanes live as long as the process.
pub struct NativeQueue {
    index: usize,
    waiter: &'static Waiter,
    /// How many streams call it their own.
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
    /// Whether a thread is completing the first of them, and will go on with the next.
    draining: bool,
    /// The position of the command whose end a host thread waits for inside the other runtime.
    awaited: Option<u64>,
}

struct Entry {
    /// `None` while the command is being completed.
    token: Option<Token>,
    /// The end of the command or, for a marker, of the last one before it.
    event: Arc<dyn NativeEvent>,
    /// The position of the command that `event` belongs to.
    position: u64,
    started: u64,
    /// How it ended, once it has; a marker ends when its turn comes.
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

    /// How many streams call it their own.
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// One more stream calls it its own.
    pub fn assign(&'static self) -> &'static Self {
        self.streams.fetch_add(1, Ordering::Relaxed);
        self
    }

    /// One stream less does.
    pub fn unassign(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// The end of the last command in flight.
    pub fn last(&self) -> Option<Arc<dyn NativeEvent>> {
        let in_flight = self.in_flight.lock();
        in_flight
            .entries
            .back()
            .map(|entry| Arc::clone(&entry.event))
    }

    /// Hands a command to the other runtime.
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
        if !event.watch(Completion {
            queue: self,
            position,
        }) {
            // Without a callback, this thread has to see to its end.
            self.waiter.hold(|| event.wait());
            Completion {
                queue: self,
                position,
            }
            .complete(Ok(()));
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

    /// Appends an entry. What executes the command is told under the lock: once it is complete, it must not be.
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

    /// Completes the commands that have ended, in the order of the queue: a thread that sees one complete sees those
    /// before it complete. One thread at a time does it; the others leave their news to it.
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
            // It stays in the list till now, so that a marker that comes meanwhile is completed after it.
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

/// The times of a native command. The other runtime's clock is ours wherever it is known; on any other, the times stay
/// within what is certain.
fn within(native: Option<(u64, u64)>, started: u64, ended: u64) -> (u64, u64) {
    let started = if started == 0 { ended } else { started };
    native.map_or((started, ended), |(from, to)| {
        let from = from.clamp(started, ended);
        (from, to.clamp(from, ended))
    })
}

/// Tells a queue that a command has ended.
pub struct Completion {
    queue: &'static NativeQueue,
    position: u64,
}

impl Completion {
    /// The command has ended. For a callback of the other runtime: it does not call that runtime.
    pub fn complete(self, outcome: ZeResult) {
        let mut in_flight = self.queue.in_flight.lock();
        let index = self.position.checked_sub(in_flight.first);
        let entry = index.and_then(|index| in_flight.entries.get_mut(usize::try_from(index).ok()?));
        if let Some(entry) = entry {
            entry.outcome.get_or_insert(outcome);
        }
        // A host thread that waits for just this command goes on after the callback, and completes it.
        let last = in_flight.entries.back().map(|entry| entry.position);
        let is_left = in_flight.awaited == Some(self.position) && last == in_flight.awaited;
        drop(in_flight);
        if !is_left {
            in_callback(|| self.queue.drain());
        }
    }
}

/// A command in flight, for those who wait for it.
#[derive(Clone)]
pub struct Native {
    /// Where it is.
    pub queue: &'static NativeQueue,
    /// The position of the command whose end `event` is.
    position: u64,
    event: Arc<dyn NativeEvent>,
}

impl Native {
    /// Waits for its end inside the other runtime, taking part in the work, and completes it. `false` when another
    /// thread does so already, or when this one could be caught in the work of other native_queues.
    pub fn wait(&self) -> bool {
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
