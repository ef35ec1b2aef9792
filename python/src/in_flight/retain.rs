//! Retaining the operands of an operation until it is complete.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;

use super::reclaimer::reclaim_later;
use super::table::InFlight;
use crate::resolve::ContextDevice;
use zeusm::{Error, Event};

/// Retains `operands` until an operation on the queue of `context_device` is complete, and enters it in the table until
/// then; returns them if it is complete already. To be called without the GIL.
///
/// # Errors
/// [`Error::Call`] when there is no queue, so that nothing can be in flight on it.
pub(crate) fn retain<T: Send + 'static>(
    context_device: &Arc<ContextDevice>,
    event: &Event,
    touched: Vec<Range<usize>>,
    operands: T,
) -> Result<Option<T>, Error> {
    if matches!(event.is_complete(), Ok(true)) {
        return Ok(Some(operands));
    }
    let queue = context_device.queue()?;
    let entry = InFlight::new(context_device, event, touched);
    queue.retain(event, (entry, Attached(Some(operands))));
    reclaim_later(queue);
    Ok(None)
}

/// Python objects whose drop attaches the interpreter, on whichever thread: it may run any Python code.
struct Attached<T>(Option<T>);

impl<T> Drop for Attached<T> {
    fn drop(&mut self) {
        if Python::try_attach(|_| drop(self.0.take())).is_none() {
            // The interpreter is finalized, and its objects with it.
            mem::forget(self.0.take());
        }
    }
}
