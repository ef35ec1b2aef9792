//! The sleep of a thread that other threads wake only if it sleeps.

use super::primitives::{AtomicBool, Condvar, Mutex, Ordering, fence};

/// Whether a thread sleeps until there is work.
///
/// Of a thread that makes work and calls [`is_awake`](Self::is_awake) then, and the thread that looks for work in
/// [`sleep`](Self::sleep), one sees what the other has stored.
#[derive(Default)]
pub struct Nap {
    is_awake: AtomicBool,
    /// Whether the thread was woken. Held for a few instructions; no other lock is taken under it.
    is_woken: Mutex<bool>,
    woken: Condvar,
}

impl Nap {
    /// Whether the thread will see the work that the caller has just made.
    pub fn is_awake(&self) -> bool {
        fence(Ordering::SeqCst);
        self.is_awake.load(Ordering::Relaxed)
    }

    /// Wakes it.
    pub fn wake(&self) {
        let mut is_woken = self.is_woken.lock();
        *is_woken = true;
        self.is_awake.store(true, Ordering::Relaxed);
        drop(is_woken);
        self.woken.notify_one();
    }

    /// Sleeps until it is woken, unless there is work.
    pub fn sleep(&self, has_work: impl Fn() -> bool) {
        let mut is_woken = self.is_woken.lock();
        self.is_awake.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while !*is_woken && !has_work() {
            is_woken = self.woken.wait(is_woken);
        }
        *is_woken = false;
        self.is_awake.store(true, Ordering::Relaxed);
    }
}
