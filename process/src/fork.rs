//! Handlers of forks, and locks that a fork holds, so that its child finds them unlocked and consistent values in them.

use std::cell::UnsafeCell;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::lock::{RwLock, RwLockWriteGuard};
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
/// use zeusm_process::{ForkLock, held_at_fork};
///
/// static NAMES: ForkLock<Vec<String>> = ForkLock::new(Vec::new());
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

/// A value with a lock that the thread that forks can hold from one handler to another.
pub struct ForkLock<T: 'static> {
    lock: RwLock<T>,
    /// The thread that holds the lock in a fork, or 0.
    holder: AtomicUsize,
    guard: UnsafeCell<Option<RwLockWriteGuard<'static, T>>>,
}

// SAFETY: only the holder accesses `guard`, and it has the lock, so there is one. The guard stays in its thread, or in the copy
// of it that a child has.
unsafe impl<T: Send + Sync> Sync for ForkLock<T> {}

impl<T> ForkLock<T> {
    /// A lock that no fork holds.
    pub const fn new(value: T) -> Self {
        Self {
            lock: RwLock::new(value),
            holder: AtomicUsize::new(0),
            guard: UnsafeCell::new(None),
        }
    }

    /// Locks it; waits until there is no other user.
    pub fn lock(&self) -> RwLockWriteGuard<'_, T> {
        self.lock.write()
    }

    /// Waits until there is no other user, changes the value, and holds the lock until [`release`](Self::release).
    pub fn hold(&'static self, change: impl FnOnce(&mut T)) {
        let mut guard = self.lock();
        change(&mut guard);
        // SAFETY: this thread has the lock, and becomes the holder.
        unsafe { *self.guard.get() = Some(guard) };
        self.holder.store(this_thread(), Ordering::Relaxed);
    }

    /// The guard of this thread's [`hold`](Self::hold), which the caller drops.
    pub fn release(&'static self) -> Option<RwLockWriteGuard<'static, T>> {
        if self.holder.load(Ordering::Relaxed) != this_thread() {
            return None;
        }
        self.holder.store(0, Ordering::Relaxed);
        // SAFETY: this thread was the holder, and has the lock until the guard is dropped.
        unsafe { (*self.guard.get()).take() }
    }
}

impl<T> Deref for ForkLock<T> {
    type Target = RwLock<T>;

    fn deref(&self) -> &RwLock<T> {
        &self.lock
    }
}

impl<T: Send + Sync> AtFork for ForkLock<T> {
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
        static LOCK: ForkLock<u32> = ForkLock::new(1);
        LOCK.hold(|value| *value += 1);
        thread::spawn(|| {
            assert!(LOCK.release().is_none());
            assert!(LOCK.try_write().is_none());
        })
        .join()
        .expect("the other thread does not panic");
        assert_eq!(LOCK.release().as_deref(), Some(&2));
        assert!(LOCK.release().is_none());
        assert_eq!(LOCK.try_write().as_deref(), Some(&2));
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "Miri does not fork")]
    fn a_child_finds_a_held_lock_free_though_another_thread_had_it() {
        static LOCK: ForkLock<u32> = ForkLock::new(0);
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
