//! Native commands, which another runtime (the native runtime) executes in its in-order queues.
//!
//! A [`NativeQueue`] is a queue of that runtime with the list of our commands in flight in it. Lock order:
//! `enqueue_lock`, held while a command is enqueued, so that the queue and the list have the same order; then
//! `in_flight`, held for a few instructions; then the locks of signals and streams. The native runtime's callback takes
//! `in_flight`, so `in_flight` is never held in a call to that runtime.

use std::hint;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use level_zero_sys as sys;
use smallvec::SmallVec;
use zeusm_process::{Mutex, MutexGuard};

use super::command::{Executor, Token};
use super::flusher::Flusher;
use super::in_flight::{Front, InFlight, Progress, Stage};
use super::native_command::Native;
use super::native_wait::{Request, Waiter};
use super::operation::Operation;
use super::primitives::SPIN_LIMIT;
use super::waiting_threads::WaitingThreads;
use super::workers::{self, dispatch, in_callback, retire_or_drop};
use crate::abi::result::ZeResult;
use crate::system::clock;

/// The completion event of an enqueued command.
pub trait NativeEvent: Send + Sync {
    /// Registers `completion` to be called when the command has ended, possibly during this call. `false` when the
    /// runtime refuses.
    fn watch(&self, completion: Completion) -> bool;
    /// Flushes the queue, so that the command is started even if no thread waits for it.
    fn flush(&self);
    /// Waits for it; the calling thread helps to execute it.
    fn wait(&self);
    /// Called once when it has ended, possibly in a callback.
    fn ended(&self) {}
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
///
/// A command is issued to the native runtime when it is enqueued, unless it is brief ([`Operation::brief_time`]), no other
/// command is issued, and a host thread is expected to wait for it ([`WaitingThreads`]): then it is only queued. A host thread
/// that waits for queued commands executes them by itself, which spares the native runtime's workers a wake-up.
/// [`flush`](Self::flush) issues the queued commands; the flusher calls it when no thread has waited for a while.
pub struct NativeQueue {
    index: usize,
    waiter: &'static Waiter,
    flusher: &'static Flusher,
    /// The threads that take its queued commands.
    waiting_threads: WaitingThreads,
    /// How many streams it is assigned to.
    streams: AtomicUsize,
    enqueue_lock: Mutex<()>,
    in_flight: Mutex<InFlight>,
    /// The position of the first queued command when the flusher looked last.
    seen: AtomicU64,
    /// A copy of [`InFlight::is_draining`], which can be read without the lock.
    is_drained: AtomicBool,
}

/// How long the queued commands of a queue may take, in nanoseconds: as long as it takes to wake a thread and hand them over.
const MOST_QUEUED: u64 = 50_000 * clock::SLOWDOWN;

/// A queued command: its position and operation.
struct Queued(u64, Arc<dyn Operation>);

/// Commands that were issued: their positions and completion events.
type Issued = SmallVec<[(u64, Arc<dyn NativeEvent>); 1]>;

impl NativeQueue {
    /// NativeQueue number `index`, empty.
    pub fn new(index: usize, waiter: &'static Waiter, flusher: &'static Flusher) -> Self {
        Self {
            index,
            waiter,
            flusher,
            waiting_threads: WaitingThreads::default(),
            streams: AtomicUsize::new(0),
            enqueue_lock: Mutex::default(),
            in_flight: Mutex::default(),
            seen: AtomicU64::new(u64::MAX),
            is_drained: AtomicBool::new(false),
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

    /// The completion event of the last command that was issued.
    pub fn last(&self) -> Option<Arc<dyn NativeEvent>> {
        self.in_flight.lock().last()
    }

    /// Queues a command, or issues it to the native runtime.
    pub fn enqueue(&'static self, token: Token) {
        let enqueue_lock = self.enqueue_lock.lock();
        let (token, queued) = match self.queue(token) {
            Ok(ready) => {
                drop(enqueue_lock);
                if !self.flusher.watch() {
                    self.issue_queued();
                }
                return dispatch(ready);
            }
            Err(not_queued) => not_queued,
        };
        let has_flushed = !queued.is_empty();
        let mut issued = self.issue_all(queued, &enqueue_lock);
        let started = clock::now();
        let (event, fault) = issue(token.operation(), self.index);
        token.note(fault);
        let ready = if let Some(event) = event {
            let mut in_flight = self.in_flight.lock();
            issued.push((in_flight.end(), Arc::clone(&event)));
            let ready = self.push(&mut in_flight, token, Stage::Issued(event), started);
            drop((in_flight, enqueue_lock));
            ready
        } else {
            drop(enqueue_lock);
            self.mark(token);
            Vec::new()
        };
        self.watch(issued);
        if has_flushed {
            self.has_flushed();
        }
        dispatch(ready);
    }

    /// Queues a command that a waiting thread should execute, or any command that follows one which a thread is executing;
    /// that thread issues it afterwards. Returns the commands that may be enqueued behind it, or the token and the queued
    /// commands, which have to be issued before.
    fn queue(&'static self, token: Token) -> Result<Vec<Token>, (Token, Vec<Queued>)> {
        let time = token.brief_time();
        // No thread is about to wait for a command that the engine's threads have made ready.
        let is_expected =
            time.is_some() && !workers::is_in_background() && self.waiting_threads.note_launch();
        let mut in_flight = self.in_flight.lock();
        let fits = |time: &u64| in_flight.queued_time() + time <= MOST_QUEUED;
        let may_wait = is_expected && !in_flight.has_issued() && !self.flusher.has_sleeping();
        let brief = time.filter(|time| may_wait && fits(time));
        if brief.is_none() && !in_flight.is_executing {
            return Err((token, begin_flush(&mut in_flight)));
        }
        in_flight.must_flush |= brief.is_none();
        Ok(self.push(&mut in_flight, token, Stage::Queued(brief), 0))
    }

    /// Issues the queued commands in their order. The caller passes the result to [`watch`](Self::watch), and calls
    /// [`has_flushed`](Self::has_flushed).
    #[must_use]
    fn issue_all(&self, queued: Vec<Queued>, _: &MutexGuard<()>) -> Issued {
        let mut issued = Issued::new();
        if queued.is_empty() {
            return issued;
        }
        for Queued(position, operation) in queued {
            let started = clock::now();
            let (event, fault) = issue(&*operation, self.index);
            let mut in_flight = self.in_flight.lock();
            issued.extend(event.clone().map(|event| (position, event)));
            self.change(&mut in_flight, |in_flight| {
                in_flight.issue(position, event, started, fault);
            });
        }
        self.in_flight.lock().is_flushing = false;
        issued
    }

    /// Has the ends of commands that were just issued reported, and the native runtime start them.
    fn watch(&'static self, issued: Issued) {
        let last = issued.len().saturating_sub(1);
        for (index, (position, event)) in issued.into_iter().enumerate() {
            let completion = || Completion {
                queue: self,
                position,
            };
            if !workers::may_have_callbacks() || !event.watch(completion()) {
                // Without a callback, this thread waits and completes it.
                self.waiter.hold(|| event.wait());
                completion().note(Ok(()));
                self.drain(None);
            }
            if index == last {
                event.flush();
            }
            retire_or_drop(event);
        }
    }

    /// Issues the queued commands, so that they are executed even if no thread waits for them. This counts as their execution by
    /// another thread.
    pub fn flush(&'static self) {
        if self.issue_queued() {
            self.waiting_threads.note_other();
        }
    }

    /// Issues the queued commands. `false` if there are none, or a thread executes them.
    pub fn issue_queued(&'static self) -> bool {
        if !self.in_flight.lock().has_queued() {
            return false;
        }
        let enqueue_lock = self.enqueue_lock.lock();
        let queued = begin_flush(&mut self.in_flight.lock());
        let has_some = !queued.is_empty();
        let issued = self.issue_all(queued, &enqueue_lock);
        drop(enqueue_lock);
        self.watch(issued);
        self.has_flushed();
        has_some
    }

    /// After a flush.
    fn has_flushed(&'static self) {
        self.waiter.renew_requests();
        // Those that could not be issued have ended.
        self.drain(None);
    }

    /// Issues the queued commands if some were already queued at the last call. `false` if none were.
    pub fn flush_old(&'static self) -> bool {
        let first = self.in_flight.lock().first_queued().unwrap_or(u64::MAX);
        let is_old = self.seen.swap(first, Ordering::Relaxed) == first && first != u64::MAX;
        if is_old {
            self.flush();
        }
        is_old
    }

    /// Completes a marker when all commands in flight are complete.
    pub fn mark(&'static self, token: Token) {
        let mut in_flight = self.in_flight.lock();
        if in_flight.is_empty() {
            drop(in_flight);
            let now = token.now_if_timed();
            return dispatch(token.complete(now, now));
        }
        let ready = self.push(&mut in_flight, token, Stage::Marker, 0);
        drop(in_flight);
        dispatch(ready);
    }

    /// Appends an entry. The executor is published under the lock, since it must not be once the command is complete.
    fn push(
        &'static self,
        in_flight: &mut InFlight,
        token: Token,
        stage: Stage,
        started: u64,
    ) -> Vec<Token> {
        let position = in_flight.end();
        let executor = Executor::Native(Native::new(self, position));
        let ready = token.executing(&executor);
        self.change(in_flight, |in_flight| in_flight.push(token, stage, started));
        ready
    }

    /// Makes a change, and tells the waiter and the flusher when it is the first or the last of its kind.
    fn change<T>(&self, in_flight: &mut InFlight, change: impl FnOnce(&mut InFlight) -> T) -> T {
        let before = (in_flight.has_issued(), in_flight.has_queued());
        let result = change(in_flight);
        match (before.0, in_flight.has_issued()) {
            (false, true) => self.waiter.queue_is_busy(),
            (true, false) => self.waiter.queue_is_idle(),
            _ => {}
        }
        match (before.1, in_flight.has_queued()) {
            (false, true) => self.flusher.queue_has_queued(),
            (true, false) => self.flusher.queue_has_none(),
            _ => {}
        }
        result
    }

    /// Completes the commands that have ended, in the order of the queue: a thread that sees one complete sees the
    /// earlier ones complete. One thread at a time drains; it also completes commands whose end other threads report
    /// meanwhile. With `until`, it executes the queued commands up to that position, too. `false` when another thread drains or
    /// flushes.
    fn drain(&'static self, until: Option<u64>) -> bool {
        let executes = until.is_some();
        let mut in_flight = self.in_flight.lock();
        if in_flight.is_draining || executes && in_flight.is_flushing {
            return false;
        }
        (in_flight.is_draining, in_flight.is_executing) = (true, executes);
        self.is_drained.store(true, Ordering::Relaxed);
        let mut ready = Vec::new();
        while let Some(front) = in_flight.front(until) {
            drop(in_flight);
            ready.append(&mut finish(front));
            in_flight = self.in_flight.lock();
            // The entry stays in the list until now, so that a marker that is added meanwhile is completed after it.
            let event = self.change(&mut in_flight, InFlight::pop);
            if event.is_none() && (ready.is_empty() || !executes) {
                continue;
            }
            drop(in_flight);
            if let Some(event) = event {
                retire_or_drop(event);
            }
            if executes {
                // A kernel that is executed next may wait for these.
                dispatch(mem::take(&mut ready));
            }
            in_flight = self.in_flight.lock();
        }
        (in_flight.is_draining, in_flight.is_executing) = (false, false);
        let must_flush = executes && mem::take(&mut in_flight.must_flush);
        self.is_drained.store(false, Ordering::Release);
        drop(in_flight);
        dispatch(ready);
        if must_flush {
            self.issue_queued();
        }
        true
    }

    /// How far the commands up to `position` are.
    pub fn progress(&self, position: u64) -> Progress {
        self.in_flight.lock().progress(position)
    }

    /// Executes the queued brief commands up to `position` on the calling thread. `false` when another thread drains or flushes.
    pub fn execute(&'static self, position: u64) -> bool {
        // The commands that the execution makes ready are launched by this thread, too.
        let launcher = self.waiting_threads.launcher();
        let has_executed = self.drain(Some(position));
        if has_executed {
            self.waiting_threads.note_execution(launcher);
        }
        has_executed
    }

    /// Completes the commands that have ended.
    pub fn complete(&'static self) {
        self.drain(None);
    }

    /// Spins while another thread drains or executes brief commands. `false` if that takes too long.
    pub fn spin_while_drained(&self) -> bool {
        for _ in 0..SPIN_LIMIT * 4 {
            if !self.is_drained.load(Ordering::Acquire) {
                return true;
            }
            hint::spin_loop();
        }
        false
    }

    /// Waits while another thread issues the queued commands.
    pub fn wait_for_flush(&self) {
        drop(self.enqueue_lock.lock());
    }

    /// Waits inside the native runtime for the command at `position`, if this thread may.
    pub fn wait_inside(&self, event: &dyn NativeEvent, position: u64) -> bool {
        self.waiter.try_hold(|| {
            self.in_flight.lock().awaited = Some(position);
            event.wait();
            self.in_flight.lock().awaited = None;
        })
    }

    /// Asks the helper to wait inside the native runtime.
    pub fn request_help(&self) -> Request<'static> {
        self.waiter.request()
    }

    /// Ends the pause of queueing, as in simulations no thread waits.
    #[cfg(test)]
    pub fn queue_again(&self) {
        self.waiting_threads.end_pause();
    }

    /// The positions of the commands in flight.
    #[cfg(test)]
    pub fn positions(&self) -> std::ops::Range<u64> {
        let in_flight = self.in_flight.lock();
        in_flight.first()..in_flight.end()
    }
}

/// Takes the commands that are to be issued. While a thread executes queued commands there are none: it flushes at its end.
fn begin_flush(in_flight: &mut InFlight) -> Vec<Queued> {
    in_flight.must_flush |= in_flight.is_executing;
    if in_flight.is_executing || !in_flight.has_queued() {
        return Vec::new();
    }
    // No thread begins to execute them from here on.
    in_flight.is_flushing = true;
    in_flight.queued(|position, token| Queued(position, token.share_operation()))
}

/// Enqueues an operation to queue number `index` of the native runtime. Returns its completion event, if there was something to
/// execute, and the error that ended the enqueueing.
fn issue(operation: &dyn Operation, index: usize) -> (Option<Arc<dyn NativeEvent>>, ZeResult) {
    let enqueued = catch_unwind(AssertUnwindSafe(|| operation.enqueue(index)));
    let Enqueued { event, fault } = enqueued.unwrap_or_else(|_| Enqueued {
        event: None,
        fault: Some(sys::ZE_RESULT_ERROR_UNKNOWN),
    });
    (event, fault.map_or(Ok(()), Err))
}

/// Completes the oldest command of a queue, and executes it before if it is queued. Returns the commands that are ready now.
fn finish(front: Front) -> Vec<Token> {
    let Front {
        token,
        event,
        started,
        fault,
        outcome,
    } = front;
    let Some(token) = token else {
        return Vec::new();
    };
    if let Some(event) = &event {
        event.ended();
    }
    let outcome = outcome.unwrap_or_else(|| {
        let executed = catch_unwind(AssertUnwindSafe(|| token.operation().execute()));
        executed.unwrap_or(Err(sys::ZE_RESULT_ERROR_UNKNOWN))
    });
    token.note(fault.and(outcome));
    if !token.is_timed() {
        return token.complete(0, 0);
    }
    let native = event.and_then(|event| event.times());
    let (started, ended) = within(native, started, clock::now());
    token.complete(started, ended)
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
            in_callback(|| {
                self.queue.drain(None);
            });
        }
    }

    /// Notes the outcome of the command. Returns whether the queue should be drained: not by this thread if a host thread waits
    /// for exactly this command, as that thread resumes after the callback, and drains.
    fn note(&self, outcome: ZeResult) -> bool {
        let mut in_flight = self.queue.in_flight.lock();
        in_flight.note(self.position, outcome);
        in_flight.awaited != Some(self.position) || !in_flight.is_last_issued(self.position)
    }
}
