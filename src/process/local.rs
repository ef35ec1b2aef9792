//! Values that one process made, and no child of a fork may touch.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;

use super::atomic::{AtomicPtr, Ordering};
use super::generation;

/// A value that the process that made it drops, and no child of that process.
///
/// A child may read it. What it owns is leaked there.
///
/// ```
/// use zeusm::process::Own;
///
/// let name = Own::new(String::from("made here"));
/// assert!(!name.is_inherited()); // It would be in a fork's child.
/// assert_eq!(name.len(), 9);
/// ```
pub struct Own<T> {
    made_by: u32,
    value: ManuallyDrop<T>,
}

impl<T> Own<T> {
    /// A value of this process.
    pub fn new(value: T) -> Self {
        Self {
            made_by: generation(),
            value: ManuallyDrop::new(value),
        }
    }

    /// Whether a parent of this process made it.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.made_by != generation()
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
///
/// As a static variable it holds what must not be shared across a fork, locks and threads for instance.
///
/// ```
/// use zeusm::process::{Local, Mutex};
///
/// static NAMES: Local<Mutex<Vec<String>>> = Local::new();
///
/// NAMES.get_or_default().lock().push("made here".to_owned());
/// assert_eq!(NAMES.get().map(|names| names.lock().len()), Some(1)); // `None` in a fork's child.
/// ```
pub struct Local<T> {
    /// Null, or from `Box::into_raw`.
    made: AtomicPtr<Own<T>>,
    owns: PhantomData<*mut T>,
}

// SAFETY: it owns its value as a `Box` does.
unsafe impl<T: Send> Send for Local<T> {}
// SAFETY: it hands out shared references, and another thread than the maker may drop the value.
unsafe impl<T: Send + Sync> Sync for Local<T> {}

impl<T> Local<T> {
    /// Empty in every process.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            made: AtomicPtr::new(ptr::null_mut()),
            owns: PhantomData,
        }
    }

    /// This process's value, if it made one.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.current(self.made.load(Ordering::Acquire))
    }

    /// This process's value, made if need be. Of two that are made at once, one is dropped.
    ///
    /// # Errors
    /// That of `make`.
    pub fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
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
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let answer: Result<&T, std::convert::Infallible> = self.get_or_try_init(|| Ok(make()));
        match answer {
            Ok(value) => value,
        }
    }

    /// As [`get_or_init`](Self::get_or_init), with the type's default.
    pub fn get_or_default(&self) -> &T
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
