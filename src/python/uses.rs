//! What uses a memory object at the moment, so that closing it pulls nothing from under anybody.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The count of a closed object.
const CLOSED: u32 = u32::MAX;

/// Counts buffers and running operations; closed when it says so, and then for good.
#[derive(Debug, Default)]
pub(super) struct Uses(AtomicU32);

/// One use, until it is dropped.
pub(super) struct Use<'a>(&'a Uses);

impl Uses {
    /// Begins a use that ends with the guard.
    pub(super) fn guard(&self) -> PyResult<Use<'_>> {
        self.begin().map(|()| Use(self))
    }

    /// Begins a use that [`end`](Self::end) ends.
    ///
    /// # Errors
    /// `ValueError` once closed.
    pub(super) fn begin(&self) -> PyResult<()> {
        self.0
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |uses| {
                (uses != CLOSED).then(|| uses + 1)
            })
            .map(drop)
            .map_err(|_| PyValueError::new_err("the memory was closed"))
    }

    /// Ends a use.
    pub(super) fn end(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Closes; the number of uses that stand in the way, if any do.
    pub(super) fn close(&self) -> Result<(), u32> {
        let closed = self
            .0
            .compare_exchange(0, CLOSED, Ordering::Acquire, Ordering::Relaxed);
        match closed {
            Ok(_) | Err(CLOSED) => Ok(()),
            Err(uses) => Err(uses),
        }
    }

    /// Opens again what [`close`](Self::close) has just closed.
    pub(super) fn reopen(&self) {
        self.0.store(0, Ordering::Release);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) == CLOSED
    }
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
