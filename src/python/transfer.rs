//! Copies and fills for Python: the GIL is released while they are submitted and while they run.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use pyo3::prelude::*;

use super::event::Fault;
use super::place::Place;
use crate::usm::{Allocation, UsmKind};
use crate::{Error, Event, Queue};

/// The size in bytes of the pieces in which memory goes between contexts that cannot reach each other.
const PIECE: usize = 4 << 20;

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

/// Copies from one place to another, directly within a context, else piece by piece through host memory.
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
    if to.context() == from.context() {
        // SAFETY: the caller vouches for the ranges.
        return unsafe { copy(py, to, destination, source, size) };
    }
    // SAFETY: the caller vouches for the ranges.
    Ok(py
        .detach(|| unsafe { in_pieces(&to.queue()?, destination, &from.queue()?, source, size) })?)
}

/// Begins to copy between queues of different contexts. A thread of the host does it, after what was submitted to
/// either queue before and before what is submitted later; `fault` tells when it failed.
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
    let wait = |event: &Event| while matches!(event.wait(None), Ok(false)) {};
    let before = [to.barrier(&[])?, from.barrier(&[])?];
    // Queues of its own, as those two go on after it.
    let into = Queue::new(to.context(), to.device())?;
    let out_of = Queue::new(from.context(), from.device())?;
    let fault = Arc::clone(fault);
    let done = to.gate(move || {
        before.iter().for_each(wait);
        // SAFETY: the caller vouches for the ranges.
        if let Err(error) = unsafe { in_pieces(&into, destination, &out_of, source, size) } {
            let _ = fault.set(error.to_string());
        }
    })?;
    let after = [done];
    let ends = from.barrier(&after).and_then(|_| to.barrier(&after));
    // Without an end that could be waited for later, now: it is at work on memory of the caller's.
    ends.inspect_err(|_| after.iter().for_each(wait)).map(Some)
}

/// Copies through a piece of host memory, which both contexts may read, and waits.
///
/// # Safety
/// As for [`copy_between`].
unsafe fn in_pieces(
    to: &Queue,
    destination: usize,
    from: &Queue,
    source: usize,
    size: usize,
) -> Result<(), Error> {
    let piece = size.min(PIECE);
    let staging = Allocation::new(to.context(), to.device(), UsmKind::Host, piece, 0)?;
    let middle = staging.as_ptr().expose_provenance();
    for offset in (0..size).step_by(PIECE) {
        let length = PIECE.min(size - offset);
        // SAFETY: the caller vouches for the ends, and the staging memory lives until this returns.
        unsafe {
            copy_now(from, middle, source + offset, length)?;
            copy_now(to, destination + offset, middle, length)?;
        }
    }
    Ok(())
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
