//! Locks without global state: a new lock works in a fork's child, whatever other threads of the parent had locked at the fork.
//! (Locks that queue waiting threads in a process-wide table, as parking_lot's do, would share that table with inherited locks,
//! and with the entries of threads that the child does not have.)
//!
//! They ignore poisoning: the values they guard are consistent wherever a panic can occur.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, TryLockError, TryLockResult};
use std::time::{Duration, Instant};

use crate::sync;
pub use crate::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// The guard, if there is one.
fn held<G>(guard: TryLockResult<G>) -> Option<G> {
    match guard {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Mutual exclusion.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// An unlocked one.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Locks it; waits while another thread has it locked.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks it; `None` while it is locked.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        held(self.0.try_lock())
    }

    /// The value, which no other thread can have locked.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Many readers or one writer.
#[derive(Debug, Default)]
pub struct RwLock<T>(sync::RwLock<T>);

impl<T> RwLock<T> {
    /// An unlocked one.
    pub const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    /// Waits until there is no writer.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value for writing; `None` while there is another user.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        held(self.0.try_write())
    }

    /// Waits until there is no other user.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A condition variable for threads with a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar {
    inner: sync::Condvar,
    /// How many threads wait. It is incremented under the lock, so a thread that takes the lock before it notifies sees all of
    /// them, and makes no system call when there are none.
    waiting: AtomicUsize,
}

impl Condvar {
    /// One without waiting threads.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            inner: sync::Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Waits for a notification; spurious wake-ups are possible.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = self.inner.wait(guard);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        guard.unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`wait`](Self::wait), until `moment` at the latest; `false` on timeout.
    pub fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        moment: Instant,
    ) -> (MutexGuard<'a, T>, bool) {
        let left = moment.saturating_duration_since(Instant::now());
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = self.inner.wait_timeout(guard, left);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let (guard, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        (guard, !outcome.timed_out())
    }

    /// Waits until `condition` is false or the timeout has expired.
    pub fn wait_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = self.inner.wait_timeout_while(guard, timeout, condition);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Wakes one thread.
    pub fn notify_one(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.inner.notify_one();
        }
    }

    /// Wakes all threads.
    pub fn notify_all(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.inner.notify_all();
        }
    }
}
