//! What uses a memory object at the moment, so that closing it pulls nothing from under anybody.

use crate::atomic::{AtomicU32, Ordering};

/// The count of a closed object.
const CLOSED: u32 = u32::MAX;
/// The count while one thread finds out whether the object can be closed.
const CLOSING: u32 = CLOSED - 1;

/// Counts buffers and running operations; closed when it says so, and then for good.
#[derive(Debug, Default)]
pub(super) struct Uses(AtomicU32);

/// One use, until it is dropped.
pub(super) struct Use<'a>(&'a Uses);

/// A use was refused: the object is closed, or about to be.
#[derive(Debug)]
pub(super) struct Closed;

/// What an attempt to close found.
pub(super) enum Close<'a> {
    /// Nothing in the way: this thread closes, or leaves the object open by dropping this.
    Begun(Closing<'a>),
    /// That many uses, another thread's attempt among them.
    Used(u32),
    /// Nothing to do any more.
    Closed,
}

/// An attempt to close, by one thread at a time.
pub(super) struct Closing<'a>(&'a Uses);

impl Uses {
    /// Begins a use that ends with the guard.
    pub(super) fn guard(&self) -> Result<Use<'_>, Closed> {
        self.begin().map(|()| Use(self))
    }

    /// Begins a use that [`end`](Self::end) ends.
    ///
    /// # Errors
    /// [`Closed`], once closed or about to be.
    pub(super) fn begin(&self) -> Result<(), Closed> {
        self.0
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |uses| {
                (uses < CLOSING).then(|| uses + 1)
            })
            .map(drop)
            .map_err(|_| Closed)
    }

    /// Ends a use.
    pub(super) fn end(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Begins to close.
    pub(super) fn close(&self) -> Close<'_> {
        let begun = self
            .0
            // Acquire in both cases: a thread that is told of the end may rely on it.
            .compare_exchange(0, CLOSING, Ordering::Acquire, Ordering::Acquire);
        match begun {
            Ok(_) => Close::Begun(Closing(self)),
            Err(CLOSED) => Close::Closed,
            Err(CLOSING) => Close::Used(1),
            Err(uses) => Close::Used(uses),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) == CLOSED
    }
}

impl Closing<'_> {
    /// Closes for good.
    pub(super) fn finish(self) {
        self.0.0.store(CLOSED, Ordering::Release);
        std::mem::forget(self);
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Release);
    }
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::{Close, Uses};

    #[test]
    fn one_closes_and_none_is_told_so_before() {
        for _ in 0..2000 {
            let (uses, freed) = (Uses::default(), AtomicU32::new(0));
            let close = |is_shared: bool| match uses.close() {
                // Something else is in the way: the object stays open.
                Close::Begun(closing) if is_shared => drop(closing),
                Close::Begun(closing) => {
                    freed.fetch_add(1, Ordering::SeqCst);
                    closing.finish();
                }
                Close::Closed => assert_eq!(freed.load(Ordering::SeqCst), 1),
                Close::Used(_) => {}
            };
            thread::scope(|scope| {
                scope.spawn(|| close(true));
                scope.spawn(|| close(false));
                scope.spawn(|| close(false));
            });
            close(false);
            assert!(uses.is_closed());
            assert_eq!(freed.into_inner(), 1);
        }
    }
}
