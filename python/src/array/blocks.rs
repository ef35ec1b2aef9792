//! Copies between strided and packed memory, block by block on the queue; gaps between elements are not touched.

use std::ffi::c_void;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::place::Place;
use crate::transfer::{self, pointer, range};
use zeusm::suai::{Block, Layout};
use zeusm::{Completion, Error, Event, Queue, Rows};

/// Copies the elements of a layout at `from`, in its row-major order, to packed memory at `to`; then waits, and gives the
/// operands back.
///
/// # Safety
/// `operands` must keep all that the layout touches from `from` on, and `layout.nbytes()` bytes at `to`, each USM of the
/// place's context or host memory.
pub(super) unsafe fn gather<T: Send + 'static>(
    py: Python<'_>,
    place: &Arc<Place>,
    from: usize,
    layout: &Layout,
    to: usize,
    operands: T,
) -> PyResult<T> {
    let sides = Sides {
        strided: from,
        packed: to,
        direction: Direction::Gather,
    };
    // SAFETY: the caller vouches for both sides.
    unsafe { copy(py, place, layout, sides, operands) }
}

/// Copies packed memory at `from` to the elements of a layout at `to`, in its row-major order, as [`gather`] does.
///
/// # Safety
/// As for [`gather`].
pub(super) unsafe fn scatter<T: Send + 'static>(
    py: Python<'_>,
    place: &Arc<Place>,
    from: usize,
    layout: &Layout,
    to: usize,
    operands: T,
) -> PyResult<T> {
    let sides = Sides {
        strided: to,
        packed: from,
        direction: Direction::Scatter,
    };
    // SAFETY: the caller vouches for both sides.
    unsafe { copy(py, place, layout, sides, operands) }
}

/// Where the two sides begin.
#[derive(Clone, Copy)]
struct Sides {
    strided: usize,
    packed: usize,
    direction: Direction,
}

#[derive(Clone, Copy)]
enum Direction {
    Gather,
    Scatter,
}

/// # Safety
/// As for [`gather`].
unsafe fn copy<T: Send + 'static>(
    py: Python<'_>,
    place: &Arc<Place>,
    layout: &Layout,
    sides: Sides,
    operands: T,
) -> PyResult<T> {
    let (extent, size) = (layout.extent(), layout.nbytes());
    let first = sides.strided.wrapping_add_signed(extent.start());
    let touched = [range(first, extent.len()), range(sides.packed, size)];
    transfer::order(py, place, &touched)?;
    let mut last = None;
    let submitted = py.detach(|| -> Result<(), Error> {
        let queue = place.queue()?;
        for block in layout.blocks() {
            // SAFETY: the caller vouches for both sides.
            last = unsafe { append(queue, &block, sides) }?;
        }
        Ok(())
    });
    // What was submitted before an error must be over as well before the operands are given back.
    let operands = transfer::finish(py, place, last, "copy", size, &touched, operands)?;
    submitted.or_raise()?;
    Ok(operands)
}

/// # Safety
/// As for [`gather`], and until the event is complete.
unsafe fn append(queue: &Queue, block: &Block, sides: Sides) -> Result<Option<Event>, Error> {
    let Block {
        width,
        rows,
        slices,
        ..
    } = *block;
    let strided = Rows {
        first: sides.strided.wrapping_add_signed(block.start),
        pitch: block.pitch,
        slice_pitch: block.slice_pitch,
    };
    let packed = Rows {
        first: sides.packed + block.packed_start,
        pitch: width,
        slice_pitch: width * rows,
    };
    let (to, from) = match sides.direction {
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
