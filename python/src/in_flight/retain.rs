//! Retaining the operands of an operation until it is complete.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use super::reclaimer::reclaim_later;
use super::table::InFlight;
use crate::interpreter::try_attach;
use crate::resolve::ContextDevice;
use zeusm::{Error, Event};

/// Retains `operands` until an operation on the queue of `context_device` is complete, and enters it in the table until
/// then; returns them if it is complete already. The caller must not hold the GIL.
///
/// # Errors
/// [`Error::Call`] when the queue cannot be made; no operation is in flight then.
pub(crate) fn retain<T: Send + 'static>(
    context_device: &Arc<ContextDevice>,
    event: &Event,
    touched: Vec<Range<usize>>,
    operands: T,
) -> Result<Option<T>, Error> {
    if event.is_over() {
        return Ok(Some(operands));
    }
    let queue = context_device.queue()?;
    let entry = InFlight::new(context_device, Some(event), touched);
    queue.retain(event, (entry, Attached(Some(operands))));
    reclaim_later(queue);
    Ok(None)
}

/// Python objects whose drop attaches the thread to the interpreter. The drop may run on any thread, and may run arbitrary
/// Python code.
struct Attached<T>(Option<T>);

impl<T> Drop for Attached<T> {
    fn drop(&mut self) {
        if try_attach(|_| drop(self.0.take())).is_none() {
            // After the finalization of the interpreter its objects are leaked.
            mem::forget(self.0.take());
        }
    }
}
