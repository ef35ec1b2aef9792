//! State that belongs to one process: a fork's child leaves its parent's untouched and makes its own.
//!
//! A child has its parent's memory but only the thread that forked. Locks that other threads held stay locked, their
//! work never ends, and a driver's handles may be the parent's alone. So a [`Local`] hands out only what the process
//! itself made: in a child it begins empty. An [`Own`] is looked at in children, too, and remembers whose it is. What a
//! child inherits of either is leaked there, with its locks, threads and handles.

mod local;
mod lock;

/// The atomics of what `tests/models` checks, which has others in their place.
pub(crate) use std::sync::atomic;
use std::sync::atomic::{AtomicU32, Ordering};

pub use local::{Local, Own};
pub use lock::{Condvar, Mutex, MutexGuard};
pub(crate) use lock::{RwLock, RwLockWriteGuard};

/// How many forks lie between the process that loaded this library and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// This process's number among its forebears; another one in each child.
fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// The generation that the driver works in, where it does not work in a fork's child as well.
static DRIVERS: AtomicU32 = AtomicU32::new(EVERY);
const EVERY: u32 = u32::MAX;

/// Confines a driver to this process. Level Zero's drivers do not work in a fork's child, which shares their files and
/// queues with its parent; zeusm's CPU runtime does.
pub(crate) fn confine_driver() {
    DRIVERS.store(generation(), Ordering::Relaxed);
}

/// Whether this process may call the driver.
pub(crate) fn has_driver() -> bool {
    let drivers = DRIVERS.load(Ordering::Relaxed);
    drivers == EVERY || drivers == generation()
}

/// Has functions called at each fork, as of `pthread_atfork`: before it, in the parent after it, in the child after it.
/// They are registered as the library is loaded, before there is any thread of ours, so that no fork goes unnoticed.
macro_rules! at_fork {
    ($before:expr, $in_parent:expr, $in_child:expr) => {
        #[cfg(not(miri))]
        #[used]
        #[unsafe(link_section = ".init_array")]
        static AT_FORK: extern "C" fn() = {
            extern "C" fn register() {
                // SAFETY: the functions do only what a child of a process with threads may do.
                unsafe { libc::pthread_atfork($before, $in_parent, $in_child) };
            }
            register
        };
    };
}
pub(crate) use at_fork;

/// Has the thread that forks hold a static [`RwLock`] meanwhile, so that a child gets it open and what it guards whole. No
/// thread that has the lock may call out of the module, let alone fork.
macro_rules! held_at_fork {
    ($lock:ident: $guarded:ty) => {
        ::std::thread_local! {
            /// The lock, while this thread forks.
            static HELD: ::std::cell::Cell<
                Option<$crate::process::RwLockWriteGuard<'static, $guarded>>,
            > = const { ::std::cell::Cell::new(None) };
        }

        extern "C" fn hold() {
            // A thread that forks as it ends goes without.
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
