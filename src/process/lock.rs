//! Locks without state beyond themselves: a new one works in a fork's child, whatever other threads of the parent did at
//! the fork. (Locks that queue their waiting threads in a table of the process would share that table with all others.)
//!
//! No poisoning: what these protect is in order wherever a panic may leave it.

pub(crate) use std::sync::MutexGuard;
use std::sync::{self, PoisonError};

/// Mutual exclusion.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
