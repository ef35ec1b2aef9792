//! Values that belong to one process, and not to its forked children.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;

use crate::atomic::{AtomicPtr, Ordering};
use crate::generation;

/// A value that is dropped only in the process that made it.
///
/// A forked child may read it. The drop in a child leaks the value.
///
/// ```
/// use zeusm_process::Owned;
///
/// let name = Owned::new(String::from("made here"));
/// assert!(!name.is_inherited()); // It would be in a fork's child.
/// assert_eq!(name.len(), 9);
/// ```
pub struct Owned<T> {
    made_by: u32,
    value: ManuallyDrop<T>,
}

impl<T> Owned<T> {
    /// A value of this process.
    pub fn new(value: T) -> Self {
        Self {
            made_by: generation(),
            value: ManuallyDrop::new(value),
        }
    }

    /// Whether the value was made by a parent process.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.made_by != generation()
    }
}

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Owned<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if !self.is_inherited() {
            // SAFETY: this is the only drop of the value, and its last use.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Owned<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(formatter)
    }
}

/// A value that each process initialises for itself, on first use and without a lock.
///
/// As a static variable it holds state that must not be shared across a fork, locks and threads for instance.
///
/// ```
/// use zeusm_process::{Local, Mutex};
///
/// static NAMES: Local<Mutex<Vec<String>>> = Local::new();
///
/// NAMES.get_or_default().lock().push("made here".to_owned());
/// assert_eq!(NAMES.get().map(|names| names.lock().len()), Some(1)); // `None` in a fork's child.
/// ```
pub struct Local<T> {
    /// Null, or from `Box::into_raw`.
    made: AtomicPtr<Owned<T>>,
    owns: PhantomData<*mut T>,
}

// SAFETY: it owns its value as a `Box` does.
unsafe impl<T: Send> Send for Local<T> {}
// SAFETY: it returns shared references, and another thread than the one that made the value may drop it.
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

    /// This process's value, if it made one.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        let made = *self.made.get_mut();
        self.current(made)?;
        // SAFETY: as in `current`, and `self` is borrowed exclusively.
        unsafe { made.as_mut() }.map(|made| &mut **made)
    }

    /// This process's value, made on first use. When two threads make it concurrently, one of the values is dropped.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        self.get_or_try_init_from(|_| make())
    }

    /// As [`get_or_try_init`](Self::get_or_try_init), with a function that gets the value of the parent, if it made one. Threads
    /// that the child does not have may have been changing that.
    fn get_or_try_init_from<E>(
        &self,
        make: impl FnOnce(Option<&T>) -> Result<T, E>,
    ) -> Result<&T, E> {
        let mut known = self.made.load(Ordering::Acquire);
        if let Some(value) = self.current(known) {
            return Ok(value);
        }
        // SAFETY: as in `current`; a value of the parent is never freed here.
        let parents = unsafe { known.as_ref() }.map(|made| &**made);
        let new = Box::into_raw(Box::new(Owned::new(make(parents)?)));
        loop {
            match self
                .made
                .compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire)
            {
                // SAFETY: a stored value is freed by `drop` only.
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

    /// As [`get_or_try_init`](Self::get_or_try_init), for an infallible `make`.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.get_or_init_from(|_| make())
    }

    /// As [`get_or_init`](Self::get_or_init), made from the parent's value, if it made one.
    pub fn get_or_init_from(&self, make: impl FnOnce(Option<&T>) -> T) -> &T {
        let answer: Result<&T, Infallible> = self.get_or_try_init_from(|parents| Ok(make(parents)));
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

    fn current(&self, made: *mut Owned<T>) -> Option<&T> {
        // SAFETY: the pointer is null or was stored here, and a stored value is freed by `drop` only.
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

#[cfg(all(test, target_os = "linux"))]
mod tests;
