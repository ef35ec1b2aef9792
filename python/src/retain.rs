//! What keeps the operands of an operation alive until it is done, and has whatever uses their memory find it.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;

use super::pending::Listed;
use super::place::Place;
use super::under_way;
use zeusm::{Error, Event};

/// Keeps `operands` until an operation on the queue of `place` is complete, and lists what it touches until then; gives
/// them back if it is complete already. Without the GIL.
///
/// # Errors
/// [`Error::Call`] when the place has no queue, so that nothing can be under way there.
pub(super) fn retain<T: Send + 'static>(
    place: &Arc<Place>,
    event: &Event,
    touched: Vec<Range<usize>>,
    operands: T,
) -> Result<Option<T>, Error> {
    if matches!(event.is_complete(), Ok(true)) {
        return Ok(Some(operands));
    }
    let queue = place.queue()?;
    let retained = (Listed::new(place, event, touched), Attached(Some(operands)));
    queue.keep(event, retained);
    under_way::watch(queue);
    Ok(None)
}

/// Python objects that are dropped with the interpreter attached, on whichever thread: that may run any Python code.
struct Attached<T>(Option<T>);

impl<T> Drop for Attached<T> {
    fn drop(&mut self) {
        if Python::try_attach(|_| drop(self.0.take())).is_none() {
            // The interpreter has gone, and its objects with it.
            mem::forget(self.0.take());
        }
    }
}
