//! State that belongs to one process: a fork's child leaves its parent's untouched and makes its own.
//!
//! A child has its parent's memory but only the thread that forked. Locks that other threads held stay locked, their
//! work never ends, and a driver's handles may be the parent's alone. So a [`Local`] hands out only what the process
//! itself made: in a child it begins empty. An [`Own`] is looked at in children, too, and remembers whose it is. What a
//! child inherits of either is leaked there, with its locks, threads and handles.

mod lock;

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

pub(crate) use lock::{Condvar, Mutex, MutexGuard, RwLock, RwLockWriteGuard};

/// How many forks lie between the process that loaded this library and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The generation that the driver works in, where it does not work in a fork's child as well.
static DRIVERS: AtomicU32 = AtomicU32::new(EVERY);
const EVERY: u32 = u32::MAX;

/// Confines a driver to this process. Level Zero's drivers do not work in a fork's child, which shares their files and
/// queues with its parent; zeusm's CPU runtime does.
pub(crate) fn confine_driver() {
    DRIVERS.store(GENERATION.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Whether this process may call the driver.
pub(crate) fn has_driver() -> bool {
    let drivers = DRIVERS.load(Ordering::Relaxed);
    drivers == EVERY || drivers == GENERATION.load(Ordering::Relaxed)
}

/// Has functions called at each fork, as of `pthread_atfork`: before it, in the parent after it, in the child after it.
/// They are registered as the library is loaded, before there is any thread of ours, so that no fork goes unnoticed.
macro_rules! at_fork {
    ($before:expr, $in_parent:expr, $in_child:expr) => {
        #[cfg(not(miri))]
        #[used]
        #[unsafe(link_section = ".init_array")]
        static AT_FORK: extern "C" fn() = {
            extern "C" fn register() {
                // SAFETY: the functions do only what a child of a process with threads may do.
                unsafe { libc::pthread_atfork($before, $in_parent, $in_child) };
            }
            register
        };
    };
}
pub(crate) use at_fork;

extern "C" fn count() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
at_fork!(None, None, Some(count));

/// A value that is dropped by the process that made it, and by no child of that.
pub(crate) struct Own<T> {
    made_by: u32,
    value: ManuallyDrop<T>,
}

impl<T> Own<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            made_by: GENERATION.load(Ordering::Relaxed),
            value: ManuallyDrop::new(value),
        }
    }

    /// Whether it is from before a fork.
    pub(crate) fn is_inherited(&self) -> bool {
        self.made_by != GENERATION.load(Ordering::Relaxed)
    }
}

impl<T> Deref for Own<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Own<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if !self.is_inherited() {
            // SAFETY: it is dropped here alone, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Own<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(formatter)
    }
}

/// A value that each process makes for itself, when first needed and without a lock.
pub(crate) struct Local<T> {
    /// Null, or from `Box::into_raw`.
    made: AtomicPtr<Own<T>>,
    owns: PhantomData<*mut T>,
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
        let new = Box::into_raw(Box::new(Own::new(make()?)));
        loop {
            match self
                .made
                .compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire)
            {
                // SAFETY: what is stored is freed by `drop` alone.
                Ok(_) => return Ok(unsafe { &*new }),
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

    fn current(&self, made: *mut Own<T>) -> Option<&T> {
        // SAFETY: it is null or was stored here, and what is stored is freed by `drop` alone.
        let made = unsafe { made.as_ref() }?;
        (!made.is_inherited()).then_some(&**made)
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
pub(crate) mod tests;
