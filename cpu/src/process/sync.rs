//! Locks and lazily created values that work across forks.
//!
//! The locks are the standard library's, which are one word each and keep no list of waiting threads. A lock with a
//! process-wide table of waiters (as parking_lot's) would leave a fork's child with entries of threads that it does not
//! have, and whose memory is reused. The locks are not poisoned by a panic: guarded values are consistent after each
//! statement.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{self as std_sync, PoisonError, TryLockError};
use std::time::Instant;

use once_cell::race::OnceBox;

pub use std_sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// A mutual exclusion lock.
#[derive(Debug, Default)]
pub struct Mutex<T>(std_sync::Mutex<T>);

impl<T> Mutex<T> {
    /// An open lock.
    pub const fn new(value: T) -> Self {
        Self(std_sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value; exclusive access needs no locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock, if no thread has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar {
    inner: std_sync::Condvar,
    /// How many threads wait. It is incremented under the lock, so a thread that takes the lock before it notifies sees
    /// all of them, and makes no system call when there are none.
    waiting: AtomicUsize,
}

impl Condvar {
    /// A condition variable without waiting threads.
    pub const fn new() -> Self {
        Self {
            inner: std_sync::Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Releases the lock until a notification.
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

/// A lock for many readers or one writer.
#[derive(Debug, Default)]
pub struct RwLock<T>(std_sync::RwLock<T>);

impl<T> RwLock<T> {
    /// An open lock.
    pub const fn new(value: T) -> Self {
        Self(std_sync::RwLock::new(value))
    }

    /// The value for reading, unless there is a writer.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        match self.0.try_read() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits until there is no writer.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is no other user.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value; exclusive access needs no locking.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A value that is created on first use. Concurrent threads each create one and the first is kept, so no thread waits
/// for another that a fork's child might not have.
#[derive(Debug)]
pub struct Lazy<T>(OnceBox<T>);

impl<T: Send + Sync> Lazy<T> {
    /// A value that is not created yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceBox::new())
    }

    /// The value, if it was created.
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// The value.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Box::new(make()))
    }
}

impl<T: Send + Sync> Default for Lazy<T> {
    fn default() -> Self {
        Self::new()
    }
}
