//! A lock for sections of a few instructions between which threads rarely meet.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::ops::{Deref, DerefMut};
use std::thread;
use std::time::Duration;

use crate::atomic::{AtomicU32, Ordering};

/// Mutual exclusion with one atomic read-modify-write operation for each section, where a [`Mutex`](super::Mutex) has two:
/// its release has to know whether a thread waits. The release is the last access to the lock, which may be freed from then on.
///
/// A thread that has to wait for longer than a few instructions yields, and then sleeps between two looks. Like a `Mutex`, it
/// has no global state and ignores poisoning.
#[derive(Default)]
pub struct SpinLock<T> {
    is_locked: AtomicU32,
    value: UnsafeCell<T>,
}

/// Access to the value of a locked [`SpinLock`], which the drop releases.
pub struct SpinGuard<'a, T>(&'a SpinLock<T>);

// SAFETY: one thread at a time has access to the value.
unsafe impl<T: Send> Sync for SpinLock<T> {}
// SAFETY: a shared guard gives shared access to the value.
unsafe impl<T: Sync> Sync for SpinGuard<'_, T> {}

/// How often a waiting thread looks before it lets others run between two looks, and before it sleeps between them, as a thread
/// of a lower priority may have the lock.
const LOOKS: u32 = 100;
const LOOKS_OR_YIELDS: u32 = 120;
const SLEEP: Duration = Duration::from_micros(50);

impl<T> SpinLock<T> {
    /// Locks it; waits while another thread has it locked.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.wait())
    }

    /// Locks it; `None` while it is locked.
    #[inline]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        let locked = self
            .is_locked
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        locked.is_ok().then(|| SpinGuard(self))
    }

    #[cold]
    fn wait(&self) -> SpinGuard<'_, T> {
        let mut looks = 0;
        loop {
            if looks < LOOKS {
                spin_loop();
            } else if looks < LOOKS_OR_YIELDS {
                thread::yield_now();
            } else {
                thread::sleep(SLEEP);
            }
            looks += 1;
            if self.is_locked.load(Ordering::Relaxed) == 0
                && let Some(guard) = self.try_lock()
            {
                return guard;
            }
        }
    }
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread has the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread has the lock, and no other reference of this guard exists.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.is_locked.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::SpinLock;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        let rounds: u64 = if cfg!(miri) { 20 } else { 20_000 };
        let pair: SpinLock<(u64, u64)> = SpinLock::default();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let mut guard = pair.lock();
                        let (first, second) = *guard;
                        assert_eq!(first, second);
                        *guard = (first + 1, second + 1);
                    }
                });
            }
        });
        assert_eq!(*pair.lock(), (4 * rounds, 4 * rounds));
    }
}
