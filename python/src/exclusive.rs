//! A value that threads use one after the other.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::interpreter::FREE_THREADED;

/// A mutex on which no thread waits. Where there is a GIL it needs no atomic operations: the thread that has it is the only
/// one.
pub(crate) struct Exclusive<T> {
    /// A use during which the GIL is released, or which re-enters, is no longer the only one.
    is_used: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: threads use the value one after the other. The GIL orders their accesses, or without one the flag.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            is_used: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Passes the value to `then`; `None` while it is in use.
    pub(crate) fn with<R>(&self, _py: Python<'_>, then: impl FnOnce(&mut T) -> R) -> Option<R> {
        let was_used = if FREE_THREADED {
            self.is_used.swap(true, Ordering::Acquire)
        } else {
            let was_used = self.is_used.load(Ordering::Relaxed);
            self.is_used.store(true, Ordering::Relaxed);
            was_used
        };
        if was_used {
            return None;
        }
        // SAFETY: no other use is in progress, as the GIL or the atomic operation ensures.
        let result = then(unsafe { &mut *self.value.get() });
        self.is_used.store(false, Ordering::Release);
        Some(result)
    }
}
