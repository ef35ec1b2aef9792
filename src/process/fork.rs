//! Functions that are called before and after a fork. Linux only; other systems have no fork (`no_fork.rs`).

use std::sync::atomic::Ordering;

use super::GENERATION;

/// Registers functions with `pthread_atfork`: before a fork, in the parent after it, in the child after it. That happens
/// when the library is loaded, before it starts a thread, so that no fork is missed.
macro_rules! at_fork {
    ($before:expr, $in_parent:expr, $in_child:expr) => {
        #[cfg(not(miri))]
        const _: () = {
            extern "C" fn register() {
                // SAFETY: the functions only do what is allowed in a fork's child of a process with threads.
                unsafe { libc::pthread_atfork($before, $in_parent, $in_child) };
            }
            #[used]
            #[unsafe(link_section = ".init_array")]
            static AT_FORK: extern "C" fn() = register;
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
