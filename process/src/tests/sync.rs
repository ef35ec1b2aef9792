//! The standard library's locks, made of loom's.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
use std::time::Duration;

use loom::sync::{Condvar as LoomCondvar, Mutex as LoomMutex, RwLock as LoomRwLock};

use super::object::Object;

/// Mutual exclusion.
pub struct Mutex<T> {
    lock: Object<LoomMutex<()>>,
    value: UnsafeCell<T>,
}

// SAFETY: one guard at a time gives access to the value.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// Access to the value of a locked mutex.
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    held: loom::sync::MutexGuard<'a, ()>,
}

impl<T> Mutex<T> {
    /// An unlocked one.
    pub const fn new(value: T) -> Self {
        Self {
            lock: Object::new(),
            value: UnsafeCell::new(value),
        }
    }

    fn lock_of_loom(&self) -> &LoomMutex<()> {
        self.lock.get(|| LoomMutex::new(()))
    }

    fn guard<'a>(&'a self, held: loom::sync::MutexGuard<'a, ()>) -> MutexGuard<'a, T> {
        MutexGuard { mutex: self, held }
    }

    /// As the standard library's.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let held = self.lock_of_loom().lock();
        Ok(self.guard(held.unwrap_or_else(PoisonError::into_inner)))
    }

    /// As the standard library's.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let held = self.lock_of_loom().try_lock();
        held.map(|held| self.guard(held))
            .map_err(|_| TryLockError::WouldBlock)
    }

    /// As the standard library's.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        Ok(self.value.get_mut())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard has the lock.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.mutex.value.get() }
    }
}

/// Many readers or one writer.
pub struct RwLock<T> {
    lock: Object<LoomRwLock<()>>,
    value: UnsafeCell<T>,
}

// SAFETY: the guards give access to the value as the lock allows.
unsafe impl<T: Send + Sync> Sync for RwLock<T> {}

/// Shared access to the value.
pub struct RwLockReadGuard<'a, T>(
    &'a T,
    #[expect(dead_code, reason = "its drop unlocks")] Reading<'a>,
);

type Reading<'a> = loom::sync::RwLockReadGuard<'a, ()>;

/// Exclusive access to the value.
pub struct RwLockWriteGuard<'a, T>(
    &'a mut T,
    #[expect(dead_code, reason = "its drop unlocks")] Writing<'a>,
);

type Writing<'a> = loom::sync::RwLockWriteGuard<'a, ()>;

impl<T> RwLock<T> {
    /// An unlocked one.
    pub const fn new(value: T) -> Self {
        Self {
            lock: Object::new(),
            value: UnsafeCell::new(value),
        }
    }

    fn lock_of_loom(&self) -> &LoomRwLock<()> {
        self.lock.get(|| LoomRwLock::new(()))
    }

    fn reading<'a>(&'a self, held: Reading<'a>) -> RwLockReadGuard<'a, T> {
        // SAFETY: there is no writer until the guard is dropped.
        RwLockReadGuard(unsafe { &*self.value.get() }, held)
    }

    /// As the standard library's.
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let held = self.lock_of_loom().read();
        Ok(self.reading(held.unwrap_or_else(PoisonError::into_inner)))
    }

    fn writing<'a>(&'a self, held: Writing<'a>) -> RwLockWriteGuard<'a, T> {
        // SAFETY: there is no other user until the guard is dropped.
        RwLockWriteGuard(unsafe { &mut *self.value.get() }, held)
    }

    /// As the standard library's.
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let held = self.lock_of_loom().try_write();
        held.map(|held| self.writing(held))
            .map_err(|_| TryLockError::WouldBlock)
    }

    /// As the standard library's.
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let held = self.lock_of_loom().write();
        Ok(self.writing(held.unwrap_or_else(PoisonError::into_inner)))
    }

    /// As the standard library's.
    pub fn into_inner(self) -> LockResult<T> {
        Ok(self.value.into_inner())
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0
    }
}

/// A condition variable, on which no wait times out.
pub struct Condvar(Object<LoomCondvar>);

/// Whether a wait timed out.
pub struct WaitTimeoutResult;

impl WaitTimeoutResult {
    /// As the standard library's.
    pub fn timed_out(&self) -> bool {
        false
    }
}

impl Condvar {
    /// One without waiting threads.
    pub const fn new() -> Self {
        Self(Object::new())
    }

    fn of_loom(&self) -> &LoomCondvar {
        self.0.get(LoomCondvar::new)
    }

    /// As the standard library's.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let MutexGuard { mutex, held } = guard;
        let held = self.of_loom().wait(held);
        Ok(mutex.guard(held.unwrap_or_else(PoisonError::into_inner)))
    }

    /// As the standard library's.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        Ok((
            self.wait(guard).unwrap_or_else(PoisonError::into_inner),
            WaitTimeoutResult,
        ))
    }

    /// As the standard library's.
    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        _timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        while condition(&mut guard) {
            guard = self.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        Ok((guard, WaitTimeoutResult))
    }

    /// As the standard library's.
    pub fn notify_one(&self) {
        self.of_loom().notify_one();
    }

    /// As the standard library's.
    pub fn notify_all(&self) {
        self.of_loom().notify_all();
    }
}

macro_rules! plain {
    ($name:ident<$value:ident>) => {
        impl<$value: Default> Default for $name<$value> {
            fn default() -> Self {
                Self::new($value::default())
            }
        }
        plain!(debug [<$value>] $name<$value>);
    };
    (debug [$($generics:tt)*] $name:ty) => {
        impl $($generics)* fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(stringify!($name))
            }
        }
    };
}

plain!(Mutex<T>);
plain!(RwLock<T>);
plain!(debug [] Condvar);

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

/// The standard library's atomics, made of loom's.
pub mod atomic {
    use std::fmt;

    use loom::sync::atomic::AtomicPtr as OfLoom;
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

    use crate::tests::object::Object;

    /// As the standard library's. The thread that uses it first makes it, so that others must come after that.
    pub struct AtomicPtr<T> {
        first: *mut T,
        object: Object<OfLoom<T>>,
    }

    // SAFETY: shared accesses use the atomic only; `first` is written through `&mut self`.
    unsafe impl<T> Sync for AtomicPtr<T> {}
    // SAFETY: as of the standard library's.
    unsafe impl<T> Send for AtomicPtr<T> {}

    impl<T> AtomicPtr<T> {
        /// As the standard library's.
        pub const fn new(first: *mut T) -> Self {
            Self {
                first,
                object: Object::new(),
            }
        }

        fn of_loom(&self) -> &OfLoom<T> {
            self.object.get(|| OfLoom::new(self.first))
        }

        /// As the standard library's.
        pub fn load(&self, order: Ordering) -> *mut T {
            self.of_loom().load(order)
        }

        /// As the standard library's.
        pub fn compare_exchange(
            &self,
            current: *mut T,
            new: *mut T,
            success: Ordering,
            failure: Ordering,
        ) -> Result<*mut T, *mut T> {
            self.of_loom()
                .compare_exchange(current, new, success, failure)
        }

        /// As the standard library's.
        pub fn get_mut(&mut self) -> &mut *mut T {
            if let Some(mut object) = self.object.take() {
                self.first = object.with_mut(|pointer| *pointer);
            }
            &mut self.first
        }
    }

    impl<T> fmt::Debug for AtomicPtr<T> {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("AtomicPtr")
        }
    }
}
