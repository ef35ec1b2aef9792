//! Native commands: what another runtime executes, in lanes.
//!
//! A lane is an in-order queue of that runtime, and beside it the list of our commands that are in it. Locks, in the order
//! in which they are taken: `turn` while a command is handed to the other runtime, so that both are in the same order;
//! then `fifo`, for a few instructions; then those of signals and streams. The other runtime's callback takes `fifo`, so
//! `fifo` is never held in a call to that runtime.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use level_zero_sys as sys;

use super::command::{Executor, Token};
use super::waiter::{Request, Waiter};
use super::workers::{dispatch, foreign, retire_or_drop};
use crate::abi::result::Answer;
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
pub struct Lane {
    index: usize,
    waiter: &'static Waiter,
    /// How many streams call it their own.
    streams: AtomicUsize,
    turn: Mutex<()>,
    fifo: Mutex<Fifo>,
}

#[derive(Default)]
struct Fifo {
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
    outcome: Option<Answer>,
}

impl Lane {
    /// Lane number `index`, empty.
    pub fn new(index: usize, waiter: &'static Waiter) -> Self {
        Self {
            index,
            waiter,
            streams: AtomicUsize::new(0),
            turn: Mutex::default(),
            fifo: Mutex::default(),
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
        let fifo = self.fifo.lock();
        fifo.entries.back().map(|entry| Arc::clone(&entry.event))
    }

    /// Hands a command to the other runtime.
    pub fn enqueue(&'static self, token: Token) {
        let turn = self.turn.lock();
        let started = clock::now();
        let enqueued = catch_unwind(AssertUnwindSafe(|| token.operation().enqueue(self.index)));
        let Enqueued { event, fault } = enqueued.unwrap_or_else(|_| Enqueued {
            event: None,
            fault: Some(sys::ZE_RESULT_ERROR_UNKNOWN),
        });
        token.note(fault.map_or(Ok(()), Err));
        let Some(event) = event else {
            drop(turn);
            return self.mark(token);
        };
        let mut fifo = self.fifo.lock();
        let position = fifo.first + fifo.entries.len() as u64;
        let entry = Entry {
            token: None,
            event: Arc::clone(&event),
            position,
            started,
            outcome: None,
        };
        let ready = self.push(&mut fifo, entry, token);
        drop(fifo);
        drop(turn);
        if !event.watch(Completion {
            lane: self,
            position,
        }) {
            // Without a callback, this thread has to see to its end.
            self.waiter.hold(|| event.wait());
            Completion {
                lane: self,
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
        let mut fifo = self.fifo.lock();
        let Some(last) = fifo.entries.back() else {
            drop(fifo);
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
        let ready = self.push(&mut fifo, entry, token);
        drop(fifo);
        dispatch(ready);
    }

    /// Appends an entry. What executes the command is told under the lock: once it is complete, it must not be.
    fn push(&'static self, fifo: &mut Fifo, entry: Entry, token: Token) -> Vec<Token> {
        if fifo.entries.is_empty() {
            self.waiter.lane_is_busy();
        }
        let executor = Executor::Native(Native {
            lane: self,
            position: entry.position,
            event: Arc::clone(&entry.event),
        });
        let ready = token.executing(&executor);
        fifo.entries.push_back(Entry {
            token: Some(token),
            ..entry
        });
        ready
    }

    /// Completes the commands that have ended, in the order of the lane: a thread that sees one complete sees those
    /// before it complete. One thread at a time does it; the others leave their news to it.
    fn drain(&self) {
        let mut ready = Vec::new();
        let mut fifo = self.fifo.lock();
        if fifo.draining {
            return;
        }
        fifo.draining = true;
        while let Some(entry) = fifo.entries.front_mut()
            && let Some(outcome) = entry.outcome
        {
            let (token, event) = (entry.token.take(), Arc::clone(&entry.event));
            let (position, started) = (entry.position, entry.started);
            let is_marker = position != fifo.first;
            drop(fifo);
            if let Some(token) = token {
                token.note(outcome);
                let native = (!is_marker && token.is_timed()).then(|| event.times());
                let (started, ended) = within(native.flatten(), started, clock::now());
                ready.extend(token.complete(started, ended));
            }
            drop(event);
            fifo = self.fifo.lock();
            // It stays in the list till now, so that a marker that comes meanwhile is completed after it.
            let entry = fifo.entries.pop_front();
            fifo.first += 1;
            if fifo.entries.is_empty() {
                self.waiter.lane_is_idle();
            }
            drop(fifo);
            if let Some(entry) = entry {
                retire_or_drop(entry.event);
            }
            fifo = self.fifo.lock();
        }
        fifo.draining = false;
        drop(fifo);
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

/// Tells a lane that a command has ended.
pub struct Completion {
    lane: &'static Lane,
    position: u64,
}

impl Completion {
    /// The command has ended. For a callback of the other runtime: it does not call that runtime.
    pub fn complete(self, outcome: Answer) {
        let mut fifo = self.lane.fifo.lock();
        let index = self.position.checked_sub(fifo.first);
        let entry = index.and_then(|index| fifo.entries.get_mut(usize::try_from(index).ok()?));
        if let Some(entry) = entry {
            entry.outcome.get_or_insert(outcome);
        }
        // A host thread that waits for just this command goes on after the callback, and completes it.
        let last = fifo.entries.back().map(|entry| entry.position);
        let is_left = fifo.awaited == Some(self.position) && last == fifo.awaited;
        drop(fifo);
        if !is_left {
            foreign(|| self.lane.drain());
        }
    }
}

/// A command in flight, for those who wait for it.
#[derive(Clone)]
pub struct Native {
    /// Where it is.
    pub lane: &'static Lane,
    /// The position of the command whose end `event` is.
    position: u64,
    event: Arc<dyn NativeEvent>,
}

impl Native {
    /// Waits for its end inside the other runtime, taking part in the work, and completes it. `false` when another
    /// thread does so already, or when this one could be caught in the work of other lanes.
    pub fn wait(&self) -> bool {
        let waited = self.lane.waiter.try_hold(|| {
            self.lane.fifo.lock().awaited = Some(self.position);
            self.event.wait();
            self.lane.fifo.lock().awaited = None;
        });
        if waited {
            self.lane.drain();
        }
        waited
    }

    /// Asks for the help of another thread.
    pub fn request_help(&self) -> Request<'static> {
        self.lane.waiter.request()
    }

    /// Tells one command from another.
    pub fn identity(&self) -> (usize, u64) {
        (ptr::from_ref(self.lane) as usize, self.position)
    }
}
