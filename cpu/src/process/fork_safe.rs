//! State of objects that a fork's child inherits and reinitializes on first use.
//!
//! A child has the handles of its parent's lists, queues, events and kernels. At the fork, threads of the parent may
//! hold their locks, and their commands may be in flight in an engine that the child does not have. So the state of
//! such an object is [`ForkSafe`]: the child replaces it in place on first use.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::generation;
use super::sync::Mutex;

/// State that can be reinitialized in a fork's child.
pub trait Reinit {
    /// The state for the child. Of `self`, it may read atomics and what it can lock without waiting.
    fn reinit(&self) -> Self;
}

/// A copy of the guarded value, or the default if a thread of the parent held the lock.
impl<T: Clone + Default> Reinit for Mutex<T> {
    fn reinit(&self) -> Self {
        Self::new(self.try_lock().map_or_else(T::default, |held| held.clone()))
    }
}

/// A value that a fork's child replaces on first use, leaking its copy of the parent's.
#[derive(Debug)]
pub struct ForkSafe<T> {
    /// The [`generation`] of the process that made the value; with [`BUSY`] while it is being replaced.
    made_by: AtomicU32,
    value: UnsafeCell<ManuallyDrop<T>>,
}

const BUSY: u32 = 1 << 31;

// SAFETY: the value is replaced by one thread, before any other thread of that process has a reference to it.
unsafe impl<T: Send + Sync> Sync for ForkSafe<T> {}

impl<T> ForkSafe<T> {
    /// Wraps a value of this process.
    pub fn new(value: T) -> Self {
        Self {
            made_by: AtomicU32::new(generation()),
            value: UnsafeCell::new(ManuallyDrop::new(value)),
        }
    }

    /// Whether the value is from before a fork, and will be replaced.
    pub fn is_inherited(&self) -> bool {
        self.made_by.load(Ordering::Acquire) != generation()
    }

    /// The value, if this process made it.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        (!self.is_inherited()).then(|| &mut **self.value.get_mut())
    }
}

impl<T: Reinit> ForkSafe<T> {
    /// This process's value.
    pub fn get(&self) -> &T {
        let made_by = self.made_by.load(Ordering::Acquire);
        if made_by != generation() {
            self.replace(made_by);
        }
        // SAFETY: a process changes the value once, in `replace`, before a reference is given out. No thread of a child
        // has one of its parent's: the thread that forked was not in the runtime.
        unsafe { &*self.value.get() }
    }

    #[cold]
    fn replace(&self, mut seen: u32) {
        let own = generation();
        while seen != own {
            // A thread of the parent that was replacing it does not exist here.
            if seen == own | BUSY {
                thread::yield_now();
                seen = self.made_by.load(Ordering::Acquire);
                continue;
            }
            match self.made_by.compare_exchange(
                seen,
                own | BUSY,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    // SAFETY: this thread alone replaces the value, and no other has a reference, as in `get`. The old
                    // value is consistent: locks guard the parts that a thread of the parent may have been changing.
                    unsafe {
                        let new = (*self.value.get()).reinit();
                        self.value.get().write(ManuallyDrop::new(new));
                    }
                    return self.made_by.store(own, Ordering::Release);
                }
                Err(other) => seen = other,
            }
        }
    }
}

impl<T> Drop for ForkSafe<T> {
    fn drop(&mut self) {
        if !self.is_inherited() {
            // SAFETY: it is dropped here alone, and not used afterwards.
            unsafe { ManuallyDrop::drop(self.value.get_mut()) };
        }
    }
}

impl<T: Default> Default for ForkSafe<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}
