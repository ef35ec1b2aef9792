//! State that belongs to one process: a fork's child does not use its parent's state, and initialises its own.
//!
//! A child has a copy of its parent's memory, and only the thread that forked. Locks that other threads held stay locked,
//! their work does not complete, and a driver's handles may be valid in the parent only. A [`Local`] therefore returns only
//! a value of the current process, and is empty in a new child. An [`Owned`] can be read in children, and records which
//! process made it. Inherited values of both are leaked in the child, with their locks, threads and handles.

mod local;
mod lock;

/// The atomics of the modules that `tests/models` checks with those of loom.
pub(crate) use std::sync::atomic;
use std::sync::atomic::{AtomicU32, Ordering};

pub use local::{Local, Owned};
pub use lock::{Condvar, Mutex, MutexGuard};
pub(crate) use lock::{RwLock, RwLockWriteGuard};

/// The number of forks between the process that loaded this library and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// This process's generation, which differs from that of its parent and of its children.
fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// The generation in which the driver works, or any.
static DRIVER_GENERATION: AtomicU32 = AtomicU32::new(ANY);
const ANY: u32 = u32::MAX;

/// Confines the driver to this process. Level Zero's drivers do not work in a fork's child, which shares their files and
/// queues with its parent; zeusm's CPU runtime does.
pub(crate) fn confine_driver() {
    DRIVER_GENERATION.store(generation(), Ordering::Relaxed);
}

/// Whether this process may call the driver.
pub(crate) fn has_driver() -> bool {
    let allowed = DRIVER_GENERATION.load(Ordering::Relaxed);
    allowed == ANY || allowed == generation()
}

/// Registers functions with `pthread_atfork`: before a fork, in the parent after it, in the child after it. That happens
/// when the library is loaded, before it starts a thread, so that no fork is missed.
macro_rules! at_fork {
    ($before:expr, $in_parent:expr, $in_child:expr) => {
        #[cfg(not(miri))]
        #[used]
        #[unsafe(link_section = ".init_array")]
        static AT_FORK: extern "C" fn() = {
            extern "C" fn register() {
                // SAFETY: the functions only do what is allowed in a fork's child of a process with threads.
                unsafe { libc::pthread_atfork($before, $in_parent, $in_child) };
            }
            register
        };
    };
}
pub(crate) use at_fork;

/// Acquires a static [`RwLock`] before a fork and releases it after the fork, so that in the child it is unlocked and the
/// guarded value is consistent. A thread that holds the lock must not call other modules.
macro_rules! held_at_fork {
    ($lock:ident: $guarded:ty) => {
        ::std::thread_local! {
            /// The lock, while this thread forks.
            static HELD: ::std::cell::Cell<
                Option<$crate::process::RwLockWriteGuard<'static, $guarded>>,
            > = const { ::std::cell::Cell::new(None) };
        }

        extern "C" fn hold() {
            // In a thread that is ending, the lock is not held.
            let _ = HELD.try_with(|held| held.set(Some($lock.write())));
        }

        extern "C" fn release() {
            let _ = HELD.try_with(::std::cell::Cell::take);
        }

        $crate::process::at_fork!(Some(hold), Some(release), Some(release));
    };
}
pub(crate) use held_at_fork;

extern "C" fn count() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
at_fork!(None, None, Some(count));

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::in_child;
