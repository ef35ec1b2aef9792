//! Peer copies: between contexts or devices, direct or staged.

use std::ptr;
use std::slice;
use std::sync::Arc;

use pyo3::prelude::*;

use super::blocking::{SMALL, copy, finish, order, pointer, range};
use crate::errors::OrRaise;
use crate::in_flight::Visible;
use crate::resolve::ContextDevice;
use zeusm::{Completion, Error, Event, Queue};

/// Copies from one context and device to another, and waits.
///
/// # Safety
/// `operands` must keep both ranges valid, each USM of its side's context; with `by_host`, memory that the host can access.
#[allow(clippy::too_many_arguments)] // Two sides of a context-device and an address each.
pub(crate) unsafe fn copy_peer<T: Send + 'static>(
    py: Python<'_>,
    to: &Arc<ContextDevice>,
    destination: usize,
    from: &Arc<ContextDevice>,
    source: usize,
    size: usize,
    by_host: bool,
    operands: T,
) -> PyResult<T> {
    if Arc::ptr_eq(to, from) {
        // SAFETY: the caller guarantees the validity of the ranges.
        return unsafe { copy(py, to, destination, source, size, by_host, operands) };
    }
    let touched = [range(destination, size), range(source, size)];
    let ordered = order(py, to, &touched)?;
    if size <= SMALL && by_host && !ordered && to.is_settled() && from.is_settled() {
        let (to, from) = (pointer(destination), pointer(source));
        // SAFETY: the caller guarantees the validity of the ranges, which may overlap.
        unsafe { ptr::copy(from.cast::<u8>(), to.cast(), size) };
        return Ok(operands);
    }
    let mut visible = Visible::new(to, from, &touched);
    let submitted = visible.detach(py, |event| -> Result<(), Error> {
        let (to, from) = (to.queue()?, from.queue()?);
        // SAFETY: the caller guarantees the validity of the ranges.
        *event = unsafe { submit_peer(to, destination, from, source, size) }?;
        Ok(())
    });
    submitted.or_raise()?;
    finish(py, visible, "copy", size, operands)
}

/// Submits a copy from the context and device of one queue to those of another. It is ordered after earlier operations and
/// before later operations of both queues. If no direct copy is possible, or if it has to wait for the host, a host task
/// copies, through staging memory if necessary; if it fails, so does the event.
///
/// # Safety
/// As for [`copy_peer`], until the event is complete.
pub(crate) unsafe fn submit_peer(
    to: &Queue,
    destination: usize,
    from: &Queue,
    source: usize,
    size: usize,
) -> Result<Option<Event>, Error> {
    if to == from {
        // SAFETY: the caller guarantees the validity of the ranges.
        return unsafe {
            to.copy_raw(
                pointer(destination),
                pointer(source),
                size,
                Completion::Event,
            )
        };
    }
    let earlier = if from.is_idle() {
        Vec::new()
    } else {
        vec![from.barrier(&[])?]
    };
    let before = to.barrier(&earlier)?;
    if size == 0 {
        return Ok(None);
    }
    // A deferred copy could not be replaced by a staged one if the driver turns out not to support it.
    let waits_for_host = !before.is_submitted();
    if !waits_for_host {
        // An operation that has failed counts as submitted, too.
        before.check_submission()?;
    }
    let direct = if waits_for_host {
        None
    } else {
        // SAFETY: as above.
        unsafe { to.peer_copy_async_raw(pointer(destination), from, pointer(source), size) }?
    };
    let done = match &direct {
        Some(done) => done.clone(),
        None => {
            // The host task uses queues of its own, as operations of the two queues wait for its event.
            let into = Queue::new(to.context(), to.device())?;
            let out_of = Queue::new(from.context(), from.device())?;
            to.try_host_task(move || {
                before.drain()?;
                before.check_submission()?;
                let (destination, source) = (pointer(destination), pointer(source));
                // SAFETY: as above.
                unsafe {
                    if waits_for_host {
                        into.peer_copy_raw(destination, &out_of, source, size)
                    } else {
                        into.staged_copy_raw(destination, &out_of, source, size)
                    }
                }
            })?
        }
    };
    let after = slice::from_ref(&done);
    let ends = from.barrier(after).and_then(|_| to.barrier(after));
    // Without an event that later waits could use, this waits now, as the copy accesses the caller's memory.
    let end = ends.inspect_err(|_| _ = to.finish(&done, "copy", size))?;
    // Only a copy that the device executes has timestamps.
    Ok(Some(direct.unwrap_or(end)))
}
