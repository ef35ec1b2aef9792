//! Locks without state beyond themselves: a new one works in a fork's child, whatever other threads of the parent did at
//! the fork. (Locks that queue their waiting threads in a table of the process would share that table with all others.)
//!
//! No poisoning: what these protect is in order wherever a panic may leave it.

use std::sync::{self, PoisonError, TryLockError};
use std::time::Duration;

pub use std::sync::MutexGuard;
pub(crate) use std::sync::{RwLockReadGuard, RwLockWriteGuard};

/// Mutual exclusion.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// An unlocked one.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Locks it, once no other thread has it locked.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks it; `None` while it is locked.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The value, which no other thread can have locked.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Many readers or one writer.
#[derive(Debug)]
pub(crate) struct RwLock<T>(sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What threads with a [`Mutex`] wait for.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// Waits for a notification; spurious wake-ups are possible.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while `goes_on` says so, at most for `limit`.
    pub fn wait_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
        goes_on: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        let waited = self.0.wait_timeout_while(guard, limit, goes_on);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
