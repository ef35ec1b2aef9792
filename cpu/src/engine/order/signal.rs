//! Signals: the state of an event or a fence, and the commands and host threads that wait for it.

use std::mem;
use std::sync::{Arc, Weak, atomic};
use std::time::Duration;

use zeusm_process::{ForkSafe, Reinit};

use super::fault::{Fault, SharedFault};
use super::help::Executor;
use super::pending::{Change, Pending};
use super::primitives::{AtomicBool, Condvar, Mutex, Ordering};
use super::ready::{Advance, ReadyList, dispatch};
use super::retired::{release_retired, retire};
use super::wait::{WaitState, wait};
use crate::abi::result::ZeResult;
use crate::system::clock::Deadline;

/// How often a thread looks at a signal of which no thread tells it.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// A number that no other object of the process has or had. Addresses are used again, while the checker still knows objects
/// that are gone.
pub struct Identity(pub usize);

impl Default for Identity {
    fn default() -> Self {
        static NEXT: atomic::AtomicUsize = atomic::AtomicUsize::new(1);
        Self(NEXT.fetch_add(1, atomic::Ordering::Relaxed))
    }
}

/// A flag that is set and reset any number of times.
///
/// The state counts for a waiting command when the command reaches it, not at submission.
#[derive(Default)]
pub struct Signal {
    identity: Identity,
    timed: bool,
    own: ForkSafe<Own>,
    /// The state, if other processes share it.
    shared: Option<Box<dyn SharedState>>,
}

/// The state of a signal that several processes set, reset and wait for.
pub trait SharedState: Send + Sync {
    /// Whether it is set, and how often it was set by any process.
    fn read(&self) -> (bool, u64);
    /// Sets it, with the times of the command, and tells the other processes. Returns what [`read`](Self::read) would have told
    /// right before.
    fn set(&self, started: u64, ended: u64) -> (bool, u64);
    /// Unsets it.
    fn reset(&self);
    /// The times of the command that set it last.
    fn times(&self) -> (u64, u64);
    /// Calls [`Signal::refresh`] from now on after another process has set it; `false` where the system refuses the thread that
    /// does so, until a later call of this for any signal of the same event pool.
    fn watch(&self) -> bool;
}

/// The state that belongs to one process.
#[derive(Default)]
struct Own {
    set: AtomicBool,
    /// Whether a submitted command, or the host, will set it.
    promised: AtomicBool,
    /// The error of the commands of this process that have set it since it was reset; if processes share it, only of those that
    /// are about to set it.
    fault: Fault,
    /// Held for a few instructions; no lock is taken and no native object is dropped under it.
    state: Mutex<State>,
    changed: Condvar,
}

impl Own {
    fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }
}

impl Reinit for Own {
    /// For the child, commands in flight in the parent count as complete.
    fn reinit(&self) -> Self {
        Self {
            set: AtomicBool::new(self.is_set() || self.promised.load(Ordering::Relaxed)),
            ..Self::default()
        }
    }
}

#[derive(Default)]
struct State {
    /// Released commands that wait for this signal. They go on to the next one of their wait lists when they are taken from
    /// here, even if this one is reset before they are advanced.
    waiting: ReadyList,
    /// The executor of the command that will set the signal; dropped when the signal is set.
    executor: Option<Executor>,
    /// Start and end of the command that set it last, in nanoseconds.
    times: (u64, u64),
    /// How often a shared signal had been set when this process noticed it last.
    seen: u64,
    /// The error of the commands of this process that have set a shared signal.
    shared_fault: SharedFault,
    /// What submitted commands will do to it. Calls of the host and other processes do not count.
    pending: Pending,
}

impl State {
    /// The commands that have been waiting, if a signal that has been set `count` times was set since this process noticed it
    /// last.
    fn take_passed(&mut self, count: u64) -> ReadyList {
        if mem::replace(&mut self.seen, count) == count {
            return ReadyList::new();
        }
        mem::take(&mut self.waiting)
    }
}

impl Signal {
    /// A signal, initially `set` or not. If it is `timed`, it keeps the times of the command that sets it.
    pub fn new(set: bool, timed: bool) -> Self {
        Self {
            identity: Identity::default(),
            timed,
            own: ForkSafe::new(Own {
                set: AtomicBool::new(set),
                ..Own::default()
            }),
            shared: None,
        }
    }

    /// A signal whose state other processes share; `state` gets a reference to the signal.
    pub fn shared<S: SharedState + 'static>(
        timed: bool,
        state: impl FnOnce(&Weak<Self>) -> S,
    ) -> Arc<Self> {
        Arc::new_cyclic(|signal| Self {
            identity: Identity::default(),
            timed,
            own: ForkSafe::default(),
            shared: Some(Box::new(state(signal))),
        })
    }

    /// Tells it from other signals.
    pub fn identity(&self) -> usize {
        self.identity.0
    }

    /// Whether other processes share it.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.read().0
    }

    /// Whether it is set, and, if processes share it, how often it was set, at one moment: another process takes no lock.
    fn read(&self) -> (bool, u64) {
        match &self.shared {
            None => (self.own.get().is_set(), 0),
            Some(shared) => shared.read(),
        }
    }

    /// Where commands of this process that are about to set it note their errors.
    pub fn fault(&self) -> &Fault {
        &self.own.get().fault
    }

    /// The outcome of the commands of this process that have set it since any process has reset it.
    pub fn outcome(&self) -> ZeResult {
        let own = self.own.get();
        if self.shared.is_none() {
            return own.fault.get();
        }
        let state = own.state.lock();
        state.shared_fault.get(self.read().1)
    }

    /// Notes that a submitted command, or the host, will set it.
    pub fn promise(&self) {
        self.own.get().promised.store(true, Ordering::Relaxed);
    }

    /// Whether a submitted command, or the host, will set it.
    pub fn is_promised(&self) -> bool {
        let own = self.own.get();
        // Under the lock, no thread is between setting the signal and ending the promise.
        let _state = own.state.lock();
        own.promised.load(Ordering::Relaxed)
    }

    /// Whether it is neither set nor promised.
    pub fn is_open(&self) -> bool {
        // The end of a promise comes behind the setting, so this order misses none.
        !self.own.get().promised.load(Ordering::Acquire) && !self.is_set()
    }

    /// Notes that a submitted command will change it.
    pub fn promise_change(&self, change: Change) {
        self.own.get().state.lock().pending.add(change);
    }

    /// Notes that a change will not be made: its command is dropped.
    pub fn withdraw_change(&self, change: Change) {
        self.own.get().state.lock().pending.remove(change);
    }

    /// Makes a change. Returns the commands that have been waiting for it.
    ///
    /// The change is pending until it is made, and not any more when a thread that has seen it calls [`reset`](Self::reset).
    #[must_use]
    pub fn make_change(&self, change: Change, started: u64, ended: u64) -> ReadyList {
        if change.sets {
            return self.set_by(Some(change), started, ended);
        }
        self.reset_by(Some(change));
        ReadyList::new()
    }

    /// Whether a command that is submitted now, and reaches it after all that are in engines, will find it set.
    pub fn is_expected(&self) -> bool {
        let state = self.own.get().state.lock();
        state.pending.leave_set(self.is_set())
    }

    /// Whether it keeps the times of the command that sets it.
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    /// Start and end of the command that set it last, in nanoseconds; `None` while it is not set.
    pub fn times(&self) -> Option<(u64, u64)> {
        if let Some(shared) = &self.shared {
            return shared.read().0.then(|| shared.times());
        }
        let own = self.own.get();
        let state = own.state.lock();
        own.is_set().then_some(state.times)
    }

    /// Sets it, wakes the host threads that wait, and returns the commands that have been waiting for it.
    #[must_use]
    pub fn set(&self, started: u64, ended: u64) -> ReadyList {
        self.set_by(None, started, ended)
    }

    /// Sets it for the host, or by a command whose change is `pending`.
    fn set_by(&self, pending: Option<Change>, started: u64, ended: u64) -> ReadyList {
        let own = self.own.get();
        let mut state = own.state.lock();
        if let Some(change) = pending {
            state.pending.remove(change);
        }
        state.times = (started, ended);
        own.set.store(true, Ordering::Release);
        if let Some(shared) = &self.shared {
            let before = shared.set(started, ended);
            state.seen = before.1 + 1;
            state.shared_fault.set(&own.fault, before);
        }
        own.promised.store(false, Ordering::Release);
        let executor = state.executor.take();
        let waiting = mem::take(&mut state.waiting);
        drop(state);
        own.changed.notify_all();
        drop(executor);
        waiting
    }

    /// Wakes the host threads that wait, and returns the commands that have been waiting, if another process has set it
    /// since this one noticed it last.
    #[must_use]
    pub fn refresh(&self) -> ReadyList {
        let own = self.own.get();
        let mut state = own.state.lock();
        let passed = state.take_passed(self.read().1);
        drop(state);
        own.changed.notify_all();
        passed
    }

    /// Unsets it.
    pub fn reset(&self) {
        self.reset_by(None);
    }

    /// Unsets it for the host, or by a command whose change is `pending`.
    fn reset_by(&self, pending: Option<Change>) {
        let own = self.own.get();
        let mut state = own.state.lock();
        if let Some(change) = pending {
            state.pending.remove(change);
        }
        own.set.store(false, Ordering::Release);
        own.fault.clear();
        state.shared_fault = SharedFault::default();
        if let Some(shared) = &self.shared {
            shared.reset();
        }
    }

    /// Returns `token` if the signal is set, else keeps it until then.
    ///
    /// A chainable token also passes a signal that a native command in flight will set, if it can be enqueued to the
    /// same in-order queue, as it is then executed after that command.
    pub fn admit<T: Advance + 'static>(&self, mut token: Box<T>) -> Option<Box<T>> {
        if self.is_set() {
            return Some(token);
        }
        if let Some(shared) = &self.shared {
            // If it is not watched, the next wait for an event of its pool, on any thread, watches it, too.
            let _ = shared.watch();
        }
        let own = self.own.get();
        let mut state = own.state.lock();
        let (is_set, count) = self.read();
        if is_set {
            return Some(token);
        }
        if let Some(queue) = state.executor.as_ref().and_then(|it| it.queue())
            && token.chain(queue)
        {
            return Some(token);
        }
        // Another process may have set and reset it, which counts for the commands that have been waiting only.
        // If it is set from here on, the count differs from the one that is noticed now, and `refresh` takes the token.
        let passed = state.take_passed(count);
        state.waiting.push(token);
        drop(state);
        if !passed.is_empty() {
            dispatch(passed);
        }
        None
    }

    /// Publishes the executor of the command that will set it.
    pub fn expect(&self, executor: Executor) {
        let own = self.own.get();
        let mut state = own.state.lock();
        let before = state.executor.replace(executor);
        own.changed.notify_all();
        drop(state);
        // There is a previous one when two commands in flight signal the same event. It is dropped later, as the caller
        // holds a queue's lock.
        if let Some(before) = before {
            retire(Box::new(before));
        }
    }

    /// Waits on the host; `false` when the deadline passes first.
    pub fn wait(&self, deadline: Deadline) -> bool {
        let own = self.own.get();
        let look = |state: &mut State| match &state.executor {
            _ if self.is_set() => WaitState::Done,
            Some(executor) => WaitState::Executing(executor.clone()),
            None => WaitState::Unknown,
        };
        if self.is_set() {
            return true;
        }
        if let Some(shared) = &self.shared
            && !matches!(deadline, Deadline::Now)
        {
            // Without a thread that tells of other processes, this one looks at times.
            while !shared.watch() {
                let slice = deadline.within(LOOK_INTERVAL);
                let is_set = wait(&own.state, &own.changed, slice, look, || self.is_set());
                if is_set || slice == deadline {
                    return is_set;
                }
            }
        }
        wait(&own.state, &own.changed, deadline, look, || self.is_set())
    }
}

impl Drop for Signal {
    /// Drops the commands that wait for the signal, which no other command can set any more. They may hold the last reference
    /// to other signals with such commands, and so on.
    fn drop(&mut self) {
        let Some(own) = self.own.get_mut() else {
            return;
        };
        let lost = mem::take(&mut own.state.get_mut().waiting);
        if !lost.is_empty() {
            retire(Box::new(lost));
            release_retired();
        }
    }
}
