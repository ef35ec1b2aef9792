//! Per-process state: locks, and state that a fork's child does not share with its parent.
//!
//! A child has the memory of its parent but only the thread that forked. Threads that it lacks may hold locks or have
//! work in flight. So state is kept in one of three ways:
//! - Tables that a child inherits are guarded by locks that are held for microseconds, and that the `fork` handlers
//!   take before a fork ([`ForkLock`](at_fork::ForkLock)).
//! - State that belongs to threads is [`PerProcess`]: a child does not touch its parent's and creates its own.
//! - State of an object that a child inherits is [`ForkSafe`](fork_safe::ForkSafe): a child replaces it in place.
//!
//! [`sync`] has the locks. [`announcement`] tells forks whose child starts another program from the rest.

pub mod announcement;
pub mod at_fork;
pub mod fork_safe;
pub mod sync;

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The number of forks between the process that loaded the library and this one, plus one.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// The generation of this process, which differs from its parent's; never 0.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Begins a new generation, in the child of a fork.
pub fn begin_generation() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// State that a process does not share with the child of a fork, which creates its own.
pub struct PerProcess<T>(AtomicPtr<(u32, T)>);

impl<T: Default + Send + Sync> PerProcess<T> {
    /// State that is created on first use.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// This process's state.
    pub fn get(&self) -> &T {
        let found = self.0.load(Ordering::Acquire);
        // SAFETY: the pointer is null or a leaked box.
        match unsafe { found.as_ref() } {
            Some((generation, state)) if *generation == self::generation() => state,
            _ => self.replace(found),
        }
    }

    /// Replaces `found`, which is null or the parent's. The parent's state is never freed, as a thread that the child
    /// does not have may have been changing it.
    fn replace(&self, found: *mut (u32, T)) -> &T {
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
