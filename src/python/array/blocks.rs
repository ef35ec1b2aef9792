//! Copies between strided and packed memory, block by block on the queue; gaps between elements are not touched.

use std::ffi::c_void;
use std::ptr;

use pyo3::prelude::*;

use crate::python::place::Place;
use crate::suai::{Block, Layout};
use crate::{Completion, Error, Event, Queue, Rows};

/// Copies the elements of a layout at `from`, in its row-major order, to packed memory at `to`; then waits.
///
/// # Safety
/// All that the layout touches from `from` on, and `layout.nbytes()` bytes at `to`, must be USM of the place's context
/// or host memory, and stay valid until this returns.
pub(super) unsafe fn gather(
    py: Python<'_>,
    place: &Place,
    from: usize,
    layout: &Layout,
    to: usize,
) -> PyResult<()> {
    // SAFETY: the caller vouches for both sides.
    unsafe { copy(py, place, layout, from, to, Direction::Gather) }
}

/// Copies packed memory at `from` to the elements of a layout at `to`, in its row-major order; then waits.
///
/// # Safety
/// As for [`gather`].
pub(super) unsafe fn scatter(
    py: Python<'_>,
    place: &Place,
    from: usize,
    layout: &Layout,
    to: usize,
) -> PyResult<()> {
    // SAFETY: the caller vouches for both sides.
    unsafe { copy(py, place, layout, to, from, Direction::Scatter) }
}

#[derive(Clone, Copy)]
enum Direction {
    Gather,
    Scatter,
}

/// # Safety
/// As for [`gather`].
unsafe fn copy(
    py: Python<'_>,
    place: &Place,
    layout: &Layout,
    strided: usize,
    packed: usize,
    direction: Direction,
) -> PyResult<()> {
    py.detach(|| -> Result<(), Error> {
        let queue = place.queue()?;
        let mut last = None;
        for block in layout.blocks() {
            // SAFETY: the caller vouches for both sides.
            match unsafe { append(queue, &block, strided, packed, direction) } {
                Ok(event) => last = event,
                Err(error) => {
                    // What was submitted before must not outlive the memory.
                    if let Some(event) = last {
                        queue.finish(&event, "copy", layout.nbytes())?;
                    }
                    return Err(error);
                }
            }
        }
        match last {
            Some(event) => queue.finish(&event, "copy", layout.nbytes()),
            None => Ok(()),
        }
    })?;
    Ok(())
}

/// # Safety
/// As for [`gather`], and until the event is complete.
unsafe fn append(
    queue: &Queue,
    block: &Block,
    strided: usize,
    packed: usize,
    direction: Direction,
) -> Result<Option<Event>, Error> {
    let Block {
        width,
        rows,
        slices,
        ..
    } = *block;
    let strided = Rows {
        first: strided.wrapping_add_signed(block.start),
        pitch: block.pitch,
        slice_pitch: block.slice_pitch,
    };
    let packed = Rows {
        first: packed + block.packed_start,
        pitch: width,
        slice_pitch: width * rows,
    };
    let (to, from) = match direction {
        Direction::Gather => (packed, strided),
        Direction::Scatter => (strided, packed),
    };
    // SAFETY: the caller vouches for both sides; the rows of a block do not overlap.
    unsafe {
        if rows * slices == 1 {
            queue.copy_raw(
                pointer(to.first),
                pointer(from.first),
                width,
                Completion::Event,
            )
        } else {
            queue.copy_rows_raw(
                writable(to),
                readable(from),
                [width, rows, slices],
                Completion::Event,
            )
        }
    }
}

fn writable(rows: Rows<usize>) -> Rows<*mut c_void> {
    Rows {
        first: pointer(rows.first),
        pitch: rows.pitch,
        slice_pitch: rows.slice_pitch,
    }
}

fn readable(rows: Rows<usize>) -> Rows<*const c_void> {
    Rows {
        first: pointer(rows.first),
        pitch: rows.pitch,
        slice_pitch: rows.slice_pitch,
    }
}

fn pointer(address: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address)
}
