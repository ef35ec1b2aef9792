//! Copies and fills for Python: the GIL is released while they are submitted and while they run.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use pyo3::prelude::*;

use super::event::Fault;
use super::place::Place;
use crate::{Error, Event, Queue};

/// Copies `size` bytes on the queue of `place`, and waits.
///
/// # Safety
/// Both ranges must stay valid until this returns, each USM of the place's context or host memory.
pub(super) unsafe fn copy(
    py: Python<'_>,
    place: &Place,
    destination: usize,
    source: usize,
    size: usize,
) -> PyResult<()> {
    // SAFETY: the caller vouches for the ranges.
    Ok(py.detach(|| unsafe { copy_now(&place.queue()?, destination, source, size) })?)
}

/// Sets `size` bytes on the queue of `place`, and waits.
///
/// # Safety
/// The range must be USM of the place's context and stay valid until this returns.
pub(super) unsafe fn fill(
    py: Python<'_>,
    place: &Place,
    destination: usize,
    value: u8,
    size: usize,
) -> PyResult<()> {
    py.detach(|| {
        let queue = place.queue()?;
        // SAFETY: the caller vouches for the range.
        match unsafe { queue.fill_raw(pointer(destination), value, size) }? {
            Some(event) => queue.finish(&event, "fill", size),
            None => Ok(()),
        }
    })?;
    Ok(())
}

/// Copies from one place to another, in whatever way there is, and waits.
///
/// # Safety
/// Each range must be USM of its place's context and stay valid until this returns.
pub(super) unsafe fn copy_between(
    py: Python<'_>,
    to: &Place,
    destination: usize,
    from: &Place,
    source: usize,
    size: usize,
) -> PyResult<()> {
    Ok(py.detach(|| {
        let (into, out_of) = (to.queue()?, from.queue()?);
        if into == out_of {
            // SAFETY: the caller vouches for the ranges.
            return unsafe { copy_now(&into, destination, source, size) };
        }
        // SAFETY: as above.
        unsafe { into.copy_between_raw(pointer(destination), &out_of, pointer(source), size) }
    })?)
}

/// Begins to copy from the place of one queue to that of another, after what was submitted to either before and before
/// what is submitted later. Where the bytes cannot go directly, a thread of the host sees to them; `fault` tells when
/// that failed.
///
/// # Safety
/// As for [`copy_between`], until the event is complete.
pub(super) unsafe fn begin_between(
    to: &Queue,
    destination: usize,
    from: &Queue,
    source: usize,
    size: usize,
    fault: &Fault,
) -> Result<Option<Event>, Error> {
    if to == from {
        // SAFETY: the caller vouches for the ranges.
        return unsafe { to.copy_raw(pointer(destination), pointer(source), size) };
    }
    let wait = |event: &Event| while matches!(event.wait(None), Ok(false)) {};
    let before = to.barrier(&[from.barrier(&[])?])?;
    if size == 0 {
        return Ok(None);
    }
    // SAFETY: as above.
    let direct = unsafe { to.begin_between_raw(pointer(destination), from, pointer(source), size) };
    let done = match &direct {
        Some(done) => done.clone(),
        None => {
            // Queues of its own, as those two go on after it.
            let into = Queue::new(to.context(), to.device())?;
            let out_of = Queue::new(from.context(), from.device())?;
            let fault = Arc::clone(fault);
            to.gate(move || {
                wait(&before);
                let (destination, source) = (pointer(destination), pointer(source));
                // SAFETY: as above.
                let copied = unsafe { into.copy_in_pieces_raw(destination, &out_of, source, size) };
                if let Err(error) = copied {
                    let _ = fault.set(error.to_string());
                }
            })?
        }
    };
    let after = [done];
    let ends = from.barrier(&after).and_then(|_| to.barrier(&after));
    // Without an end that could be waited for later, now: it is at work on memory of the caller's.
    let end = ends.inspect_err(|_| after.iter().for_each(wait))?;
    // Only what the device did has times.
    Ok(Some(direct.unwrap_or(end)))
}

/// # Safety
/// As for [`copy`].
unsafe fn copy_now(
    queue: &Queue,
    destination: usize,
    source: usize,
    size: usize,
) -> Result<(), Error> {
    // SAFETY: the caller vouches for the ranges.
    match unsafe { queue.copy_raw(pointer(destination), pointer(source), size) }? {
        Some(event) => queue.finish(&event, "copy", size),
        None => Ok(()),
    }
}

/// The pointer that Python's number is.
pub(super) fn pointer(address: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address)
}
