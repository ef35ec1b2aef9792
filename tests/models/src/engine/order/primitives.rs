//! Replaces the engine's `primitives`: the locks of `zeusm-process`, implemented with loom's.

use std::sync::PoisonError;
use std::time::Instant;

use loom::sync::{Condvar as LoomCondvar, Mutex as LoomMutex};

pub use loom::sync::MutexGuard;
pub use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub use loom::thread;

pub const SPIN_LIMIT: u32 = 1;
pub const THREAD_STACK: usize = 1 << 20;

#[derive(Default)]
pub struct Mutex<T>(LoomMutex<T>);

impl<T> Mutex<T> {
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub struct Condvar(LoomCondvar);

impl Condvar {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Loom does not model time, so the deadline never passes.
    pub fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _moment: Instant,
    ) -> (MutexGuard<'a, T>, bool) {
        (self.wait(guard), true)
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }
}
