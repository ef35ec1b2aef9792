//! Copies and fills for Python: the GIL is released while they are submitted and while they run.

use std::ffi::c_void;
use std::ptr;

use pyo3::prelude::*;

use super::place::Place;
use crate::Error;
use crate::usm::{Allocation, UsmKind};

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
    Ok(py.detach(|| unsafe { copy_now(place, destination, source, size) })?)
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
    py.detach(|| -> Result<(), Error> {
        let piece = size.min(PIECE);
        let staging = Allocation::new(to.context(), to.device(), UsmKind::Host, piece, 0)?;
        let middle = staging.as_ptr().expose_provenance();
        for offset in (0..size).step_by(PIECE) {
            let length = PIECE.min(size - offset);
            // SAFETY: the caller vouches for the ends; the staging memory is the host's, which both contexts may read.
            unsafe {
                copy_now(from, middle, source + offset, length)?;
                copy_now(to, destination + offset, middle, length)?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// # Safety
/// As for [`copy`].
unsafe fn copy_now(
    place: &Place,
    destination: usize,
    source: usize,
    size: usize,
) -> Result<(), Error> {
    let queue = place.queue()?;
    // SAFETY: the caller vouches for the ranges.
    match unsafe { queue.copy_raw(pointer(destination), pointer(source), size) }? {
        Some(event) => queue.finish(&event, "copy", size),
        None => Ok(()),
    }
}

fn pointer(address: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address)
}
