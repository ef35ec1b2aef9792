//! Copies and fills for Python. The GIL is released while they are submitted and while they run, unless they are small.
//!
//! Each takes what keeps its operands alive, and gives that back once it is done. If a signal, Ctrl-C for instance, ends
//! the wait before, the operands are retained until then.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use pyo3::prelude::*;

use super::event::{self, Fault};
use super::place::Place;
use super::retain::retain;
use super::{pending, under_way};
use crate::errors::{IntoException, OrRaise};
use zeusm::{Completion, Error, Event, Queue};

/// Up to this many bytes are moved with the GIL held: letting go of it and taking it again costs as much.
const BRIEF: usize = 64 << 10;

/// Copies `size` bytes on the queue of `place`, and waits. What is small the host copies by itself where it may look at
/// both sides (`by_host`), if nothing is under way that the copy would have to come after.
///
/// # Safety
/// `operands` must keep both ranges valid, each USM of the place's context or host memory; with `by_host`, memory that the
/// host may look at.
pub(super) unsafe fn copy<T: Send + 'static>(
    py: Python<'_>,
    place: &Arc<Place>,
    destination: usize,
    source: usize,
    size: usize,
    by_host: bool,
    operands: T,
) -> PyResult<T> {
    let (to, from) = (pointer(destination), pointer(source));
    let touched = [range(destination, size), range(source, size)];
    let ordered = order(py, place, &touched)?;
    if size <= BRIEF && by_host && !ordered && place.is_settled() {
        // SAFETY: the caller vouches for the ranges, which may overlap.
        unsafe { ptr::copy(from.cast::<u8>(), to.cast(), size) };
        return Ok(operands);
    }
    let queue = place.queue().or_raise()?;
    let event = if size <= BRIEF {
        // SAFETY: the caller vouches for the ranges.
        unsafe { queue.copy_raw(to, from, size, Completion::SpinWait) }
    } else {
        // SAFETY: the caller vouches for the ranges.
        py.detach(|| unsafe {
            queue.copy_raw(
                pointer(destination),
                pointer(source),
                size,
                Completion::Event,
            )
        })
    }
    .or_raise()?;
    finish(py, place, event, "copy", size, &touched, operands)
}

/// Sets `size` bytes as [`copy`] copies them.
///
/// # Safety
/// `operands` must keep the range valid, which must be USM of the place's context; with `by_host`, memory that the host
/// may look at.
pub(super) unsafe fn fill<T: Send + 'static>(
    py: Python<'_>,
    place: &Arc<Place>,
    destination: usize,
    value: u8,
    size: usize,
    by_host: bool,
    operands: T,
) -> PyResult<T> {
    let to = pointer(destination);
    let touched = [range(destination, size)];
    let ordered = order(py, place, &touched)?;
    if size <= BRIEF && by_host && !ordered && place.is_settled() {
        // SAFETY: the caller vouches for the range.
        unsafe { ptr::write_bytes(to.cast::<u8>(), value, size) };
        return Ok(operands);
    }
    let queue = place.queue().or_raise()?;
    let event = if size <= BRIEF {
        // SAFETY: the caller vouches for the range.
        unsafe { queue.fill_raw(to, value, size, Completion::SpinWait) }
    } else {
        // SAFETY: the caller vouches for the range.
        py.detach(|| unsafe {
            queue.fill_raw(pointer(destination), value, size, Completion::Event)
        })
    }
    .or_raise()?;
    finish(py, place, event, "fill", size, &touched, operands)
}

/// Copies from one place to another, in whatever way there is, and waits.
///
/// # Safety
/// `operands` must keep both ranges valid, each USM of its place's context; with `by_host`, memory that the host may look
/// at.
#[allow(clippy::too_many_arguments)] // Two sides of a place and an address each.
pub(super) unsafe fn copy_between<T: Send + 'static>(
    py: Python<'_>,
    to: &Arc<Place>,
    destination: usize,
    from: &Arc<Place>,
    source: usize,
    size: usize,
    by_host: bool,
    operands: T,
) -> PyResult<T> {
    if Arc::ptr_eq(to, from) {
        // SAFETY: the caller vouches for the ranges.
        return unsafe { copy(py, to, destination, source, size, by_host, operands) };
    }
    let touched = [range(destination, size), range(source, size)];
    let ordered = order(py, to, &touched)?;
    if size <= BRIEF && by_host && !ordered && to.is_settled() && from.is_settled() {
        let (to, from) = (pointer(destination), pointer(source));
        // SAFETY: the caller vouches for the ranges, which may overlap.
        unsafe { ptr::copy(from.cast::<u8>(), to.cast(), size) };
        return Ok(operands);
    }
    let fault = Fault::default();
    // SAFETY: the caller vouches for the ranges.
    let event = py
        .detach(|| unsafe {
            begin_between(
                to.queue()?,
                destination,
                from.queue()?,
                source,
                size,
                &fault,
            )
        })
        .or_raise()?;
    let operands = finish(py, to, event, "copy", size, &touched, operands)?;
    event::check(&fault)?;
    Ok(operands)
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
        unsafe { to.begin_peer_copy_raw(pointer(destination), from, pointer(source), size) }?;
    let done = match &direct {
        Some(done) => done.clone(),
        None => {
            // Queues of its own, as those two go on after it.
            let into = Queue::new(to.context(), to.device())?;
            let out_of = Queue::new(from.context(), from.device())?;
            let fault = Arc::clone(fault);
            to.host_task(move || {
                before.drain();
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
    let end = ends.inspect_err(|_| after.iter().for_each(|event| _ = event.drain()))?;
    // Only what the device did has times.
    Ok(Some(direct.unwrap_or(end)))
}

/// Lets what is submitted to the queue of `place` from here on come after what other queues have under way on the same
/// bytes; `false` when there is nothing of that kind.
pub(super) fn order(
    py: Python<'_>,
    place: &Arc<Place>,
    touched: &[Range<usize>],
) -> PyResult<bool> {
    let before = pending::touching(touched, Some(place));
    if before.is_empty() {
        return Ok(false);
    }
    py.detach(|| place.queue()?.barrier(&before)).or_raise()?;
    Ok(true)
}

/// Waits for what was not done in a moment, without the GIL; gives the operands back.
///
/// # Errors
/// What a signal's handler raises, or the operation's error. The operands are then retained until the operation is over.
pub(super) fn finish<T: Send + 'static>(
    py: Python<'_>,
    place: &Arc<Place>,
    event: Option<Event>,
    operation: &'static str,
    size: usize,
    touched: &[Range<usize>],
    operands: T,
) -> PyResult<T> {
    let Some(event) = event else {
        return Ok(operands);
    };
    let interrupted = loop {
        match py.detach(|| event.wait(Some(event::SLICE))) {
            Ok(true) => return Ok(operands),
            Ok(false) => {
                if let Err(raised) = py.check_signals() {
                    break raised;
                }
            }
            // The queue waits once more, so that the work is over if it can be.
            Err(cause) => match py.detach(|| place.queue()?.finish(&event, operation, size)) {
                Ok(()) => {
                    let device = place.device().name().to_owned();
                    let cause = Box::new(cause);
                    return Err(Error::Operation {
                        operation,
                        size,
                        device,
                        cause,
                    }
                    .into_exception());
                }
                Err(failed) => break failed.into_exception(),
            },
        }
    };
    under_way::prepare(py)?;
    drop(
        py.detach(|| retain(place, &event, touched.to_vec(), operands))
            .or_raise()?,
    );
    Err(interrupted)
}

/// The addresses of `size` bytes.
pub(super) fn range(first: usize, size: usize) -> Range<usize> {
    first..first.saturating_add(size)
}

/// The pointer that Python's number is.
pub(super) fn pointer(address: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address)
}
