//! Signals: the state of an event or a fence, and the commands and host threads that wait for it.

use std::cell::RefCell;
use std::mem;

use super::command::{Executor, Token};
use super::primitives::{AtomicBool, Condvar, Mutex, Ordering};
use super::wait::{WaitState, wait};
use super::workers::retire;
use crate::process::fork_safe::{ForkSafe, Reinit};
use crate::system::clock::Deadline;

/// A flag that is set and reset any number of times.
///
/// The state counts for a waiting command when the command reaches it, not at submission.
#[derive(Default)]
pub struct Signal {
    timed: bool,
    own: ForkSafe<Own>,
}

/// What belongs to one process.
#[derive(Default)]
struct Own {
    set: AtomicBool,
    /// Whether a submitted command will set it.
    promised: AtomicBool,
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
    /// Released commands that wait for this signal next.
    waiting: Vec<Token>,
    /// The executor of the command that will set the signal; dropped when the signal is set.
    executor: Option<Executor>,
    /// Start and end of the command that set it last, in nanoseconds.
    times: (u64, u64),
}

impl Signal {
    /// A signal, initially `set` or not. If it is `timed`, it keeps the times of the command that sets it.
    pub fn new(set: bool, timed: bool) -> Self {
        Self {
            timed,
            own: ForkSafe::new(Own {
                set: AtomicBool::new(set),
                ..Own::default()
            }),
        }
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.own.get().is_set()
    }

    /// Notes that a submitted command will set it.
    pub fn promise(&self) {
        self.own.get().promised.store(true, Ordering::Relaxed);
    }

    /// Whether a submitted command will set it.
    pub fn is_promised(&self) -> bool {
        self.own.get().promised.load(Ordering::Relaxed)
    }

    /// Whether it keeps the times of the command that sets it.
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    /// Start and end of the command that set it last, in nanoseconds; `None` while it is not set.
    pub fn times(&self) -> Option<(u64, u64)> {
        let own = self.own.get();
        let state = own.state.lock();
        own.is_set().then_some(state.times)
    }

    /// Sets it, wakes the host threads that wait, and returns the commands that have been waiting for it.
    #[must_use]
    pub fn set(&self, started: u64, ended: u64) -> Vec<Token> {
        let own = self.own.get();
        let mut state = own.state.lock();
        state.times = (started, ended);
        own.set.store(true, Ordering::Release);
        own.promised.store(false, Ordering::Relaxed);
        let executor = state.executor.take();
        let waiting = mem::take(&mut state.waiting);
        drop(state);
        own.changed.notify_all();
        drop(executor);
        waiting
    }

    /// Unsets it.
    pub fn reset(&self) {
        let own = self.own.get();
        let _state = own.state.lock();
        own.set.store(false, Ordering::Release);
    }

    /// Returns `token` if the signal is set, else keeps it until then.
    ///
    /// A chainable token also passes a signal that a native command in flight will set, if it can be enqueued to the
    /// same in-order queue, as it is then executed after that command.
    pub fn admit(&self, mut token: Token) -> Option<Token> {
        let own = self.own.get();
        if own.is_set() {
            return Some(token);
        }
        let mut state = own.state.lock();
        if own.is_set() {
            return Some(token);
        }
        if let Some(Executor::Native(native)) = &state.executor
            && token.chain(native.queue)
        {
            return Some(token);
        }
        state.waiting.push(token);
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
            retire(before);
        }
    }

    /// Waits on the host; `false` when the deadline passes first.
    pub fn wait(&self, deadline: Deadline) -> bool {
        let own = self.own.get();
        let look = |state: &mut State| match &state.executor {
            _ if own.is_set() => WaitState::Done,
            Some(executor) => WaitState::Executing(executor.clone()),
            None => WaitState::Unknown,
        };
        own.is_set() || wait(&own.state, &own.changed, deadline, look, || own.is_set())
    }
}

thread_local! {
    /// Commands that can never run, collected while this thread is dropping such commands.
    static ORPHANS: RefCell<Option<Vec<Token>>> = const { RefCell::new(None) };
}

impl Drop for Signal {
    /// Drops the commands that wait for the signal, which no other command can set any more.
    ///
    /// They may hold the last reference to other signals with such commands, and so on. The outermost call drops them
    /// one after another, since recursion could overflow the stack.
    fn drop(&mut self) {
        let Some(own) = self.own.get_mut() else {
            return;
        };
        let mut lost = mem::take(&mut own.state.get_mut().waiting);
        if lost.is_empty() {
            return;
        }
        let outermost = ORPHANS.try_with(|orphans| match &mut *orphans.borrow_mut() {
            Some(orphans) => {
                orphans.append(&mut lost);
                false
            }
            none => {
                *none = Some(Vec::new());
                true
            }
        });
        while let Some(token) = lost.pop() {
            drop(token);
            let _ = ORPHANS.try_with(|orphans| {
                if let Some(orphans) = &mut *orphans.borrow_mut() {
                    lost.append(orphans);
                }
            });
        }
        if outermost == Ok(true) {
            ORPHANS.set(None);
        }
    }
}
