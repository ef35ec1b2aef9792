//! Objects that a fork's child inherits, and what it makes of them.
//!
//! Lists, queues, events and kernels are named by handles that a child has, too. Their locks may be held by threads of the
//! parent at the fork, and their commands are on their way in an engine that the child does not have. So whatever such
//! an object guards is [`Renewed`]: the child replaces it, in place, when it first looks at it.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::generation;
use super::sync::Mutex;

/// What a child has in the place of its parent's.
pub trait Renew {
    /// The child's own. Of `self`, only what is atomic or can be locked at once may be looked at.
    fn renew(&self) -> Self;
}

/// What a lock guarded, unless a thread of the parent was about to change it: a new one then.
impl<T: Clone + Default> Renew for Mutex<T> {
    fn renew(&self) -> Self {
        Self::new(self.try_lock().map_or_else(T::default, |held| held.clone()))
    }
}

/// A value that a child replaces when it first needs it. Its parent's is leaked there.
#[derive(Debug)]
pub struct Renewed<T> {
    /// The [`generation`] of the process that made the value; with [`BUSY`] while it is being replaced.
    made_by: AtomicU32,
    value: UnsafeCell<ManuallyDrop<T>>,
}

const BUSY: u32 = 1 << 31;

// SAFETY: the value is replaced by one thread, before any other thread of that process has a reference to it.
unsafe impl<T: Send + Sync> Sync for Renewed<T> {}

impl<T> Renewed<T> {
    /// One with a value of this process's.
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

    /// The value without a look at locks, if it is this process's.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        (!self.is_inherited()).then(|| &mut **self.value.get_mut())
    }
}

impl<T: Renew> Renewed<T> {
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
            // A thread of a parent that was replacing it does not count.
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
                    // SAFETY: this thread alone replaces the value, and no other has a reference, as in `get`. What is
                    // there is whole: locks guard what a thread of the parent may have been changing.
                    unsafe {
                        let new = (*self.value.get()).renew();
                        self.value.get().write(ManuallyDrop::new(new));
                    }
                    return self.made_by.store(own, Ordering::Release);
                }
                Err(other) => seen = other,
            }
        }
    }
}

impl<T> Drop for Renewed<T> {
    fn drop(&mut self) {
        if !self.is_inherited() {
            // SAFETY: it is dropped here alone, and not used afterwards.
            unsafe { ManuallyDrop::drop(self.value.get_mut()) };
        }
    }
}

impl<T: Default> Default for Renewed<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}
