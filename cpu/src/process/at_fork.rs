//! Locks that a fork holds, so that its child finds them unlocked, and consistent values in them.

use std::cell::UnsafeCell;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::sync::{Mutex, MutexGuard, RwLock, RwLockWriteGuard};

/// State that the handlers of a fork prepare for the child.
pub trait AtFork: Sync {
    /// Blocks changes by other threads until this thread calls [`parent`](Self::parent) or [`child`](Self::child).
    fn prepare(&'static self);
    /// Undoes [`prepare`](Self::prepare), in the parent.
    fn parent(&'static self);
    /// Undoes [`prepare`](Self::prepare), in the child.
    fn child(&'static self) {
        self.parent();
    }
}

/// A lock that excludes all other users.
pub trait ExclusiveLock: Sync + 'static {
    /// The lock is released when this is dropped.
    type Guard: 'static;
    /// Waits until there is no other user.
    fn exclusive(&'static self) -> Self::Guard;
}

impl<T: Send + 'static> ExclusiveLock for Mutex<T> {
    type Guard = MutexGuard<'static, T>;

    fn exclusive(&'static self) -> Self::Guard {
        self.lock()
    }
}

impl<T: Send + Sync + 'static> ExclusiveLock for RwLock<T> {
    type Guard = RwLockWriteGuard<'static, T>;

    fn exclusive(&'static self) -> Self::Guard {
        self.write()
    }
}

/// A lock that the thread that forks can hold from one handler to another.
pub struct ForkLock<L: ExclusiveLock> {
    lock: L,
    /// The thread that holds the lock in a fork, or 0. The child's thread has the number of the thread that forked.
    holder: AtomicUsize,
    guard: UnsafeCell<Option<L::Guard>>,
}

// SAFETY: only the holder accesses `guard`, and it holds the lock, so there is one. Its guard stays in its thread, or in the
// copy of it that a child has.
unsafe impl<L: ExclusiveLock> Sync for ForkLock<L> {}

impl<L: ExclusiveLock> ForkLock<L> {
    /// A lock that no fork holds.
    pub const fn new(lock: L) -> Self {
        Self {
            lock,
            holder: AtomicUsize::new(0),
            guard: UnsafeCell::new(None),
        }
    }

    /// Holds the lock, of which `guard` is, until [`release`](Self::release).
    pub fn hold(&'static self, guard: L::Guard) {
        // SAFETY: this thread holds the lock, and becomes the holder.
        unsafe { *self.guard.get() = Some(guard) };
        self.holder.store(this_thread(), Ordering::Relaxed);
    }

    /// The guard of this thread's [`hold`](Self::hold), which the caller drops.
    pub fn release(&'static self) -> Option<L::Guard> {
        if self.holder.load(Ordering::Relaxed) != this_thread() {
            return None;
        }
        self.holder.store(0, Ordering::Relaxed);
        // SAFETY: this thread was the holder, and has the lock until the guard is dropped.
        unsafe { (*self.guard.get()).take() }
    }
}

impl<L: ExclusiveLock> Deref for ForkLock<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.lock
    }
}

impl<L: ExclusiveLock> AtFork for ForkLock<L> {
    fn prepare(&'static self) {
        self.hold(self.lock.exclusive());
    }

    fn parent(&'static self) {
        drop(self.release());
    }
}

/// A number of this thread that differs from those of all other threads, and is the same in a fork's child.
fn this_thread() -> usize {
    // SAFETY: the function has no preconditions.
    unsafe { libc::pthread_self() as usize }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn only_the_thread_that_holds_the_lock_releases_it() {
        static LOCK: ForkLock<Mutex<u32>> = ForkLock::new(Mutex::new(1));
        LOCK.prepare();
        thread::spawn(|| {
            assert!(LOCK.release().is_none());
            assert!(LOCK.try_lock().is_none());
        })
        .join()
        .expect("the other thread does not panic");
        assert_eq!(LOCK.release().as_deref(), Some(&1));
        assert!(LOCK.release().is_none());
        assert_eq!(LOCK.try_lock().as_deref(), Some(&1));
    }
}
