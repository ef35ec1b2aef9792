//! Pin counts of memory objects: an object cannot be closed while it is pinned.

use zeusm_process::atomic::{AtomicU32, Ordering};

/// The count of a closed object.
const CLOSED: u32 = u32::MAX;
/// The count while one thread checks whether the object can be closed.
const CLOSING: u32 = CLOSED - 1;

/// Counts the buffers and operations that use a memory object.
#[derive(Debug, Default)]
pub(crate) struct Pins(AtomicU32);

/// A pin, which the drop releases.
pub(crate) struct PinGuard<'a>(&'a Pins);

/// The object is closed or being closed, so it cannot be pinned.
#[derive(Debug)]
pub(crate) struct Closed;

/// The result of an attempt to close.
pub(crate) enum Close<'a> {
    /// The object is not pinned: this thread closes it, or drops this and leaves it open.
    Begun(Closing<'a>),
    /// The number of pins of the object; another thread's attempt to close counts as one.
    Pinned(u32),
    /// The object is closed already.
    Closed,
}

/// An attempt to close, by one thread at a time.
pub(crate) struct Closing<'a>(&'a Pins);

impl Pins {
    /// Pins the object until the guard is dropped.
    pub(crate) fn pin(&self) -> Result<PinGuard<'_>, Closed> {
        self.acquire().map(|()| PinGuard(self))
    }

    /// Pins the object until [`release`](Self::release).
    ///
    /// # Errors
    /// [`Closed`] when the object is closed or being closed.
    pub(crate) fn acquire(&self) -> Result<(), Closed> {
        self.0
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |pins| {
                (pins < CLOSING).then(|| pins + 1)
            })
            .map(drop)
            .map_err(|_| Closed)
    }

    /// Checks that the object is neither closed nor being closed.
    pub(crate) fn check_open(&self) -> Result<(), Closed> {
        if self.0.load(Ordering::Acquire) < CLOSING {
            Ok(())
        } else {
            Err(Closed)
        }
    }

    /// The number of pins.
    pub(crate) fn count(&self) -> u32 {
        let pins = self.0.load(Ordering::Relaxed);
        if pins < CLOSING { pins } else { 0 }
    }

    /// Releases a pin of [`acquire`](Self::acquire).
    pub(crate) fn release(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Begins to close.
    pub(crate) fn close(&self) -> Close<'_> {
        let begun = self
            .0
            // Both orderings are Acquire: a thread that finds the object closed must observe that its memory is freed.
            .compare_exchange(0, CLOSING, Ordering::Acquire, Ordering::Acquire);
        match begun {
            Ok(_) => Close::Begun(Closing(self)),
            Err(CLOSED) => Close::Closed,
            Err(CLOSING) => Close::Pinned(1),
            Err(pins) => Close::Pinned(pins),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) == CLOSED
    }
}

impl Closing<'_> {
    /// Closes the object, which cannot be opened again.
    pub(crate) fn finish(self) {
        self.0.0.store(CLOSED, Ordering::Release);
        std::mem::forget(self);
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Release);
    }
}

impl Drop for PinGuard<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests;
