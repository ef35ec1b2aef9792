//! State that belongs to one process: a fork's child leaves its parent's untouched and makes its own.
//!
//! A child has its parent's memory but only the thread that forked. Locks that other threads held stay locked, their
//! work never ends, and a driver's handles may be the parent's alone. So a [`Local`] hands out only what the process
//! itself made: in a child it begins empty, and the inherited value is leaked with its locks, threads and handles. What
//! owns a handle by itself remembers its [`Generation`], and in a child is forgotten where it would be freed.

mod lock;

use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

pub(crate) use lock::{Mutex, MutexGuard};

/// How many forks lie between the process that loaded this library and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Runs as the library is loaded, before there is any thread of ours, so that no fork goes unnoticed.
#[cfg(not(miri))]
#[used]
#[unsafe(link_section = ".init_array")]
static COUNT_FORKS: extern "C" fn() = {
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    extern "C" fn count_forks() {
        // SAFETY: the handler does what a child of a process with threads may do: it adds to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
    count_forks
};

/// A process, as told apart from those that it was forked from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u32);

impl Generation {
    /// This process's.
    pub(crate) fn current() -> Self {
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether it is this process's.
    pub(crate) fn is_current(self) -> bool {
        self == Self::current()
    }
}

/// A value that each process makes for itself, when first needed and without a lock.
pub(crate) struct Local<T> {
    /// Null, or from `Box::into_raw`.
    made: AtomicPtr<Made<T>>,
    owns: PhantomData<*mut T>,
}

struct Made<T> {
    by: Generation,
    value: T,
}

// SAFETY: it owns its value as a `Box` does.
unsafe impl<T: Send> Send for Local<T> {}
// SAFETY: it hands out shared references, and another thread than the maker may drop the value.
unsafe impl<T: Send + Sync> Sync for Local<T> {}

impl<T> Local<T> {
    /// Of no process yet.
    pub(crate) const fn new() -> Self {
        Self {
            made: AtomicPtr::new(ptr::null_mut()),
            owns: PhantomData,
        }
    }

    /// This process's value, if it made one.
    pub(crate) fn get(&self) -> Option<&T> {
        self.current(self.made.load(Ordering::Acquire))
    }

    /// This process's value, made if need be. Of two that are made at once, one is dropped.
    pub(crate) fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        let mut known = self.made.load(Ordering::Acquire);
        if let Some(value) = self.current(known) {
            return Ok(value);
        }
        // The generation first: `make` may fork, and its value is then the parent's.
        let by = Generation::current();
        let new = Box::into_raw(Box::new(Made { by, value: make()? }));
        loop {
            match self
                .made
                .compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire)
            {
                // SAFETY: what is stored is freed by `drop` alone.
                Ok(_) => return Ok(unsafe { &(*new).value }),
                Err(other) => {
                    if let Some(value) = self.current(other) {
                        // SAFETY: it was not stored, so this is its only owner.
                        drop(unsafe { Box::from_raw(new) });
                        return Ok(value);
                    }
                    known = other;
                }
            }
        }
    }

    /// As [`get_or_try_init`](Self::get_or_try_init), for what cannot fail.
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let answer: Result<&T, std::convert::Infallible> = self.get_or_try_init(|| Ok(make()));
        match answer {
            Ok(value) => value,
        }
    }

    /// As [`get_or_init`](Self::get_or_init), with the type's default.
    pub(crate) fn get_or_default(&self) -> &T
    where
        T: Default,
    {
        self.get_or_init(T::default)
    }

    fn current(&self, made: *mut Made<T>) -> Option<&T> {
        // SAFETY: it is null or was stored here, and what is stored is freed by `drop` alone.
        let made = unsafe { made.as_ref() }?;
        made.by.is_current().then_some(&made.value)
    }
}

impl<T> Drop for Local<T> {
    fn drop(&mut self) {
        let made = *self.made.get_mut();
        if self.current(made).is_some() {
            // SAFETY: it came from `Box::into_raw`, and no reference to it outlives `self`.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

impl<T> Default for Local<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Local<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Local").field(&self.get()).finish()
    }
}

#[cfg(test)]
mod tests;
