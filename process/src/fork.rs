//! Handlers of forks, and locks that a fork holds, so that its child finds them unlocked and consistent values in them.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lock::{Mutex, MutexGuard, RwLock, RwLockWriteGuard};
use crate::thread::this_thread;

/// A function that the C library calls at a fork.
pub type Handler = Option<extern "C" fn()>;

/// Registers functions with the C library: before a fork, in the parent after it, in the child after it. Those before a fork
/// are called in the reverse order of their registration. Systems without fork register nothing.
///
/// The child of a process with threads may call little: the functions wait for no lock that another thread can hold.
pub fn register(before: Handler, in_parent: Handler, in_child: Handler) {
    #[cfg(target_os = "linux")]
    {
        let [before, in_parent, in_child] = [before, in_parent, in_child]
            .map(|handler| handler.map(|handler| handler as unsafe extern "C" fn()));
        // SAFETY: the functions can be called at any time. Without memory for them the process goes on without.
        unsafe { libc::pthread_atfork(before, in_parent, in_child) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (before, in_parent, in_child);
}

/// Has [`register`] called when the library is loaded, before it starts a thread, so that no fork is missed.
#[macro_export]
macro_rules! at_fork {
    ($before:expr, $in_parent:expr, $in_child:expr) => {
        const _: () = {
            extern "C" fn register() {
                $crate::fork::register($before, $in_parent, $in_child);
            }
            #[cfg_attr(all(target_os = "linux", not(miri)), used)]
            #[cfg_attr(
                all(target_os = "linux", not(miri)),
                unsafe(link_section = ".init_array")
            )]
            #[cfg_attr(not(all(target_os = "linux", not(miri))), expect(dead_code))]
            static AT_LOAD: extern "C" fn() = register;
        };
    };
}

#[doc(hidden)]
pub use at_fork;

/// Has every fork hold a static [`ForkLock`]. A thread with the lock must not wait for another lock that a fork holds.
///
/// ```
/// use zeusm_process::{ForkLock, RwLock, held_at_fork};
///
/// static NAMES: ForkLock<RwLock<Vec<String>>> = ForkLock::new(RwLock::new(Vec::new()));
/// held_at_fork!(NAMES);
/// ```
#[macro_export]
macro_rules! held_at_fork {
    ($lock:ident) => {
        const _: () = {
            extern "C" fn hold() {
                $crate::fork::AtFork::prepare(&$lock);
            }
            extern "C" fn release() {
                $crate::fork::AtFork::parent(&$lock);
            }
            $crate::fork::at_fork!(Some(hold), Some(release), Some(release));
        };
    };
}

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
///
/// # Safety
/// From [`exclusive`](Self::exclusive) until the drop of its guard, no other guard of the lock exists.
pub unsafe trait ExclusiveLock: Sync + 'static {
    /// What the lock guards.
    type Value;
    /// The lock is released when this is dropped.
    type Guard: DerefMut<Target = Self::Value> + 'static;
    /// Waits until there is no other user.
    fn exclusive(&'static self) -> Self::Guard;
}

// SAFETY: a mutex has one guard at a time.
unsafe impl<T: Send + 'static> ExclusiveLock for Mutex<T> {
    type Value = T;
    type Guard = MutexGuard<'static, T>;

    fn exclusive(&'static self) -> Self::Guard {
        self.lock()
    }
}

// SAFETY: the guard of a writer excludes all others.
unsafe impl<T: Send + Sync + 'static> ExclusiveLock for RwLock<T> {
    type Value = T;
    type Guard = RwLockWriteGuard<'static, T>;

    fn exclusive(&'static self) -> Self::Guard {
        self.write()
    }
}

/// A lock that the thread that forks can hold from one handler to another.
pub struct ForkLock<L: ExclusiveLock> {
    lock: L,
    /// The thread that holds the lock in a fork, or 0.
    holder: AtomicUsize,
    guard: UnsafeCell<Option<L::Guard>>,
}

// SAFETY: only the holder accesses `guard`, and it has the lock, so there is one. The guard stays in its thread, or in the copy
// of it that a child has.
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

    /// Waits until there is no other user, changes the value, and holds the lock until [`release`](Self::release).
    pub fn hold(&'static self, change: impl FnOnce(&mut L::Value)) {
        let mut guard = self.lock.exclusive();
        change(&mut guard);
        // SAFETY: this thread has the lock, and becomes the holder.
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
        self.hold(|_| ());
    }

    fn parent(&'static self) {
        drop(self.release());
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn only_the_thread_that_holds_the_lock_releases_it() {
        static LOCK: ForkLock<Mutex<u32>> = ForkLock::new(Mutex::new(1));
        LOCK.hold(|value| *value += 1);
        thread::spawn(|| {
            assert!(LOCK.release().is_none());
            assert!(LOCK.try_lock().is_none());
        })
        .join()
        .expect("the other thread does not panic");
        assert_eq!(LOCK.release().as_deref(), Some(&2));
        assert!(LOCK.release().is_none());
        assert_eq!(LOCK.try_lock().as_deref(), Some(&2));
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "Miri does not fork")]
    fn a_child_finds_a_held_lock_free_though_another_thread_had_it() {
        static LOCK: ForkLock<RwLock<u32>> = ForkLock::new(RwLock::new(0));
        held_at_fork!(LOCK);
        let stop = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    *LOCK.write() += 1;
                }
            });
            for _ in 0..20 {
                crate::testing::in_child(|| *LOCK.write() += 1);
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
