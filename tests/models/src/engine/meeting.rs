//! In the place of the engine's `meeting`: locks with parking_lot's names, made of loom's.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Instant;

use loom::sync::{Condvar as LoomCondvar, Mutex as LoomMutex, MutexGuard as LoomGuard};

pub use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub use loom::thread;

pub const SPINS: u32 = 1;

#[derive(Default)]
pub struct Mutex<T>(LoomMutex<T>);

/// Empty while it is unlocked.
pub struct MutexGuard<'a, T> {
    mutex: &'a LoomMutex<T>,
    locked: Option<LoomGuard<'a, T>>,
}

fn lock<T>(mutex: &LoomMutex<T>) -> LoomGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Mutex<T> {
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            mutex: &self.0,
            locked: Some(lock(&self.0)),
        }
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> MutexGuard<'_, T> {
    pub fn unlocked<U>(guard: &mut Self, then: impl FnOnce() -> U) -> U {
        guard.locked = None;
        let answer = then();
        guard.locked = Some(lock(guard.mutex));
        answer
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.locked.as_ref().expect("locked")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.locked.as_mut().expect("locked")
    }
}

#[derive(Default)]
pub struct Condvar(LoomCondvar);

/// Never: no time passes.
pub struct TimedOut;

impl TimedOut {
    pub fn timed_out(&self) -> bool {
        false
    }
}

impl Condvar {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let locked = guard.locked.take().expect("locked");
        let locked = self.0.wait(locked);
        guard.locked = Some(locked.unwrap_or_else(PoisonError::into_inner));
    }

    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, _moment: Instant) -> TimedOut {
        self.wait(guard);
        TimedOut
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }
}
