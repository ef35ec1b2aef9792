//! Locks and lazily made values that a fork can be lived with.
//!
//! The locks are the standard library's, which are a word each and know nothing of the threads that wait. A lock that
//! keeps its waiters in a table of the process (as parking_lot's do) leaves a child of a fork with a table full of
//! threads that the child does not have, whose memory new threads get. The locks here have no poison: what they guard is
//! right after each statement, or the panic ends the process at the API's boundary.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{self as std_sync, PoisonError, TryLockError};
use std::time::Instant;

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

    /// The value, without looking at the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, if no thread has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// What threads with a [`Mutex`] wait for.
#[derive(Debug, Default)]
pub struct Condvar {
    inner: std_sync::Condvar,
    /// How many threads wait. It grows under the lock, so a thread that had the lock before it notifies sees all those
    /// that wait; where there is none, no system call is made.
    waiting: AtomicUsize,
}

impl Condvar {
    /// One that nothing waits for.
    pub const fn new() -> Self {
        Self {
            inner: std_sync::Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Lets go of the lock until a notification.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = self.inner.wait(guard);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        guard.unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`wait`](Self::wait), until `moment` at the latest; `false` when that has come.
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

    /// The value, without looking at the lock.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A value that is made when it is first wanted. Threads that want it at once each make one, and the first is kept: no
/// thread waits for another, which a fork might leave behind.
#[derive(Debug)]
pub struct Lazy<T>(AtomicPtr<T>);

impl<T: Send + Sync> Lazy<T> {
    /// One that has not been made.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The value, if it has been made.
    pub fn get(&self) -> Option<&T> {
        // SAFETY: the pointer is null or a leaked box, which is never freed.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The value.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(made) = self.get() {
            return made;
        }
        let ours = Box::into_raw(Box::new(make()));
        let null = ptr::null_mut();
        let kept = match self
            .0
            .compare_exchange(null, ours, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => ours,
            Err(theirs) => {
                // SAFETY: no other thread has seen the box.
                drop(unsafe { Box::from_raw(ours) });
                theirs
            }
        };
        // SAFETY: as in `get`; the pointer is not null.
        unsafe { &*kept }
    }
}

impl<T: Send + Sync> Default for Lazy<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Owns a value that only the thread with some lock may touch, for as long as it has it.
#[derive(Debug)]
pub struct Held<T>(std::cell::UnsafeCell<Option<T>>);

// SAFETY: `put` and `take` are called by one thread at a time, as their callers promise.
unsafe impl<T> Sync for Held<T> {}

impl<T> Held<T> {
    /// One without a value.
    #[must_use]
    pub const fn new() -> Self {
        Self(std::cell::UnsafeCell::new(None))
    }

    /// Keeps `value`.
    ///
    /// # Safety
    /// The caller has the lock that goes with it.
    pub unsafe fn put(&self, value: T) {
        // SAFETY: the lock keeps all other threads away.
        unsafe { *self.0.get() = Some(value) };
    }

    /// Gives the value back.
    ///
    /// # Safety
    /// As for [`put`](Self::put).
    pub unsafe fn take(&self) -> Option<T> {
        // SAFETY: the lock keeps all other threads away.
        unsafe { (*self.0.get()).take() }
    }
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self::new()
    }
}
