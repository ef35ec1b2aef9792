//! Objects of loom in values with a `const` constructor, which loom's own types lack.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The number of the interleaving that is being run.
static INTERLEAVING: AtomicU64 = AtomicU64::new(0);

/// Another interleaving begins.
pub fn begin_interleaving() {
    INTERLEAVING.fetch_add(1, Ordering::Relaxed);
}

/// An object of loom, made on first use in each interleaving: that of a static variable lives longer than one.
pub struct Object<T>(Mutex<Option<(u64, Box<T>)>>);

impl<T> Object<T> {
    /// One that is not made yet.
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// That of this interleaving.
    pub fn get(&self, make: impl FnOnce() -> T) -> &T {
        let now = INTERLEAVING.load(Ordering::Relaxed);
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if made.as_ref().is_none_or(|(then, _)| *then != now) {
            *made = Some((now, Box::new(make())));
        }
        let object: *const T = made
            .as_ref()
            .map_or(std::ptr::null(), |(_, object)| &**object);
        // SAFETY: the box was made above or before, and is dropped with `self`, or in another interleaving, which begins when all
        // threads of this one have ended.
        unsafe { &*object }
    }

    /// Removes that of this interleaving.
    pub fn take(&mut self) -> Option<T> {
        let made = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (then, object) = made.take()?;
        (then == INTERLEAVING.load(Ordering::Relaxed)).then_some(*object)
    }
}
