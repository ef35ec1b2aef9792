//! Replaces the crate `zeusm_process`: its locks and atomics, implemented with loom's, and its fork-safe values.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, RwLock as StdRwLock};
use std::time::Duration;

#[path = "../../../process/src/local.rs"]
mod local;

pub(crate) use crate::fork_safe::{ForkSafe, Reinit};
pub(crate) use local::{Local, Owned};
pub use loom::sync::MutexGuard;
/// The pool's models do not depend on how threads wait for a lock.
pub type SpinLock<T> = Mutex<T>;
pub type SpinGuard<'a, T> = MutexGuard<'a, T>;

/// Forks are not modelled.
pub fn generation() -> u32 {
    0
}

macro_rules! held_at_fork {
    ($lock:ident) => {
        const _: fn() = || {
            let _ = &$lock;
        };
    };
}
pub(crate) use held_at_fork;

pub mod atomic {
    use std::sync::OnceLock;

    use loom::sync::atomic::AtomicPtr as Pointer;
    pub use loom::sync::atomic::{AtomicU32, Ordering};

    /// An atomic pointer with a `const` constructor, which loom's type lacks.
    pub struct AtomicPtr<T> {
        first: *mut T,
        shared: OnceLock<Pointer<T>>,
    }

    // SAFETY: shared accesses only use the atomic pointer; `first` is only written through `&mut self`.
    unsafe impl<T> Sync for AtomicPtr<T> {}

    impl<T> AtomicPtr<T> {
        pub const fn new(first: *mut T) -> Self {
            Self {
                first,
                shared: OnceLock::new(),
            }
        }

        fn shared(&self) -> &Pointer<T> {
            self.shared.get_or_init(|| Pointer::new(self.first))
        }

        pub fn load(&self, order: Ordering) -> *mut T {
            self.shared().load(order)
        }

        pub fn compare_exchange(
            &self,
            current: *mut T,
            new: *mut T,
            success: Ordering,
            failure: Ordering,
        ) -> Result<*mut T, *mut T> {
            self.shared()
                .compare_exchange(current, new, success, failure)
        }

        pub fn get_mut(&mut self) -> &mut *mut T {
            if let Some(shared) = self.shared.get_mut() {
                self.first = shared.with_mut(|pointer| *pointer);
            }
            &mut self.first
        }
    }
}

#[derive(Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Mutex")
    }
}

/// Timeouts do not expire.
#[derive(Debug, Default)]
pub struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        _timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while condition(&mut guard) {
            guard = self.0.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        guard
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

loom::lazy_static! {
    /// The lock that loom tracks on behalf of the static locks, because loom's locks have no `const` constructor.
    static ref GATE: loom::sync::RwLock<()> = loom::sync::RwLock::new(());
}

/// Nothing is locked at a fork.
pub struct ForkLock<L>(L);

impl<L> ForkLock<L> {
    pub const fn new(lock: L) -> Self {
        Self(lock)
    }
}

impl<L> Deref for ForkLock<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.0
    }
}

pub struct RwLock<T>(StdRwLock<T>);

/// The guards of the static lock and of the lock that loom tracks.
pub struct Guarded<G, H>(G, H);

pub type RwLockReadGuard<'a, T> =
    Guarded<std::sync::RwLockReadGuard<'a, T>, loom::sync::RwLockReadGuard<'static, ()>>;
pub type RwLockWriteGuard<'a, T> =
    Guarded<std::sync::RwLockWriteGuard<'a, T>, loom::sync::RwLockWriteGuard<'static, ()>>;

impl<T> RwLock<T> {
    pub const fn new(value: T) -> Self {
        Self(StdRwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        let seen = GATE.read().unwrap_or_else(PoisonError::into_inner);
        Guarded(self.0.read().unwrap_or_else(PoisonError::into_inner), seen)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        let seen = GATE.write().unwrap_or_else(PoisonError::into_inner);
        Guarded(self.0.write().unwrap_or_else(PoisonError::into_inner), seen)
    }
}

impl<G: Deref, H> Deref for Guarded<G, H> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.0
    }
}

impl<G: DerefMut, H> DerefMut for Guarded<G, H> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.0
    }
}
