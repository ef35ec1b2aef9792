//! Copies and fills for Python. The GIL is released while they are submitted and while they run, unless they are small.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use pyo3::prelude::*;

use super::event::Fault;
use super::place::Place;
use crate::{Completion, Error, Event, Queue};

/// Up to this many bytes are moved with the GIL held: letting go of it and taking it again costs as much.
const BRIEF: usize = 64 << 10;

/// Copies `size` bytes on the queue of `place`, and waits. What is small the host copies by itself where it may look at
/// both sides (`by_host`), if nothing is under way that the copy would have to come after.
///
/// # Safety
/// Both ranges must stay valid until this returns, each USM of the place's context or host memory; with `by_host`,
/// memory that the host may look at.
pub(super) unsafe fn copy(
    py: Python<'_>,
    place: &Place,
    destination: usize,
    source: usize,
    size: usize,
    by_host: bool,
) -> PyResult<()> {
    let (to, from) = (pointer(destination), pointer(source));
    if size > BRIEF {
        // SAFETY: the caller vouches for the ranges.
        return Ok(py.detach(|| unsafe { copy_now(place.queue()?, destination, source, size) })?);
    }
    if by_host && place.is_settled() {
        // SAFETY: the caller vouches for the ranges, which may overlap.
        unsafe { ptr::copy(from.cast::<u8>(), to.cast(), size) };
        return Ok(());
    }
    let queue = place.queue()?;
    // SAFETY: the caller vouches for the ranges.
    let event = unsafe { queue.copy_raw(to, from, size, Completion::SpinWait) }?;
    finish(py, queue, event, "copy", size)
}

/// Sets `size` bytes as [`copy`] copies them.
///
/// # Safety
/// The range must be USM of the place's context and stay valid until this returns; with `by_host`, memory that the host
/// may look at.
pub(super) unsafe fn fill(
    py: Python<'_>,
    place: &Place,
    destination: usize,
    value: u8,
    size: usize,
    by_host: bool,
) -> PyResult<()> {
    let to = pointer(destination);
    if size <= BRIEF && by_host && place.is_settled() {
        // SAFETY: the caller vouches for the range.
        unsafe { ptr::write_bytes(to.cast::<u8>(), value, size) };
        return Ok(());
    }
    let queue = place.queue()?;
    let event = if size <= BRIEF {
        // SAFETY: the caller vouches for the range.
        unsafe { queue.fill_raw(to, value, size, Completion::SpinWait) }
    } else {
        // SAFETY: the caller vouches for the range.
        py.detach(|| unsafe {
            queue.fill_raw(pointer(destination), value, size, Completion::Event)
        })
    }?;
    finish(py, queue, event, "fill", size)
}

/// Waits for what was not done in a moment, without the GIL.
fn finish(
    py: Python<'_>,
    queue: &Queue,
    event: Option<Event>,
    operation: &'static str,
    size: usize,
) -> PyResult<()> {
    match event {
        Some(event) => Ok(py.detach(|| queue.finish(&event, operation, size))?),
        None => Ok(()),
    }
}

/// Copies from one place to another, in whatever way there is, and waits.
///
/// # Safety
/// Each range must be USM of its place's context and stay valid until this returns; with `by_host`, memory that the host
/// may look at.
pub(super) unsafe fn copy_between(
    py: Python<'_>,
    to: &Place,
    destination: usize,
    from: &Place,
    source: usize,
    size: usize,
    by_host: bool,
) -> PyResult<()> {
    if size <= BRIEF && by_host && to.is_settled() && from.is_settled() {
        // SAFETY: the caller vouches for the ranges, which may overlap.
        unsafe {
            ptr::copy(
                pointer(source).cast::<u8>(),
                pointer(destination).cast(),
                size,
            )
        };
        return Ok(());
    }
    let (into, out_of) = (to.queue()?, from.queue()?);
    if into == out_of {
        // SAFETY: the caller vouches for the ranges.
        return unsafe { copy(py, to, destination, source, size, by_host) };
    }
    // SAFETY: as above.
    Ok(py.detach(|| unsafe {
        into.peer_copy_raw(pointer(destination), out_of, pointer(source), size)
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
        return unsafe {
            to.copy_raw(
                pointer(destination),
                pointer(source),
                size,
                Completion::Event,
            )
        };
    }
    let before = to.barrier(&[from.barrier(&[])?])?;
    if size == 0 {
        return Ok(None);
    }
    // SAFETY: as above.
    let direct =
        unsafe { to.begin_peer_copy_raw(pointer(destination), from, pointer(source), size) };
    let done = match &direct {
        Some(done) => done.clone(),
        None => {
            // Queues of its own, as those two go on after it.
            let into = Queue::new(to.context(), to.device())?;
            let out_of = Queue::new(from.context(), from.device())?;
            let fault = Arc::clone(fault);
            to.host_task(move || {
                before.outlast();
                let (destination, source) = (pointer(destination), pointer(source));
                // SAFETY: as above.
                let copied = unsafe { into.staged_copy_raw(destination, &out_of, source, size) };
                if let Err(error) = copied {
                    let _ = fault.set(error.to_string());
                }
            })?
        }
    };
    let after = [done];
    let ends = from.barrier(&after).and_then(|_| to.barrier(&after));
    // Without an end that could be waited for later, now: it is at work on memory of the caller's.
    let end = ends.inspect_err(|_| after.iter().for_each(Event::outlast))?;
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
    match unsafe {
        queue.copy_raw(
            pointer(destination),
            pointer(source),
            size,
            Completion::Event,
        )
    }? {
        Some(event) => queue.finish(&event, "copy", size),
        None => Ok(()),
    }
}

/// The pointer that Python's number is.
pub(super) fn pointer(address: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address)
}
