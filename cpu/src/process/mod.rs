//! What belongs to one process, and is not shared with the child of a fork.
//!
//! A child has the memory of its parent but only the thread that forked: locks may be held by threads that it does not
//! have, and work may be in flight in threads that it does not have. So state is kept in one of three ways:
//! - Tables that a child inherits are guarded by locks that are held for microseconds. A fork takes them first (`fork`).
//! - State that belongs to threads is [`PerProcess`]: a child leaves its parent's alone and makes its own.
//! - State of an object that a child inherits is [`Renewed`](renew::Renewed): a child replaces it in place.
//!
//! [`sync`] has the locks.

pub mod renew;
pub mod sync;

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// How many forks lie between this process and the one that loaded the library, and one more.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// A number that is another one in a child of this process; never 0.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Makes this process, the child of a fork, another one than its parent.
pub fn begin_generation() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// State that a process shares with no child of a fork: a child finds a new one, and never looks at its parent's.
pub struct PerProcess<T>(AtomicPtr<(u32, T)>);

impl<T: Default + Send + Sync> PerProcess<T> {
    /// One that is made when it is first needed.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// This process's own.
    pub fn get(&self) -> &T {
        let found = self.0.load(Ordering::Acquire);
        // SAFETY: the pointer is null or a leaked box.
        match unsafe { found.as_ref() } {
            Some((generation, state)) if *generation == self::generation() => state,
            _ => self.renew(found),
        }
    }

    /// Makes one in the place of `found`, which is null or the parent's. That is never freed: a thread that the child
    /// does not have may have been changing it.
    fn renew(&self, found: *mut (u32, T)) -> &T {
        let ours = Box::into_raw(Box::new((generation(), T::default())));
        let exchanged = self
            .0
            .compare_exchange(found, ours, Ordering::AcqRel, Ordering::Acquire);
        let kept = exchanged.map_or_else(
            |theirs| {
                // SAFETY: no other thread has seen the box.
                drop(unsafe { Box::from_raw(ours) });
                theirs
            },
            |_| ours,
        );
        // SAFETY: a box that is never freed.
        unsafe { &(*kept).1 }
    }
}

impl<T: Default + Send + Sync> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}
