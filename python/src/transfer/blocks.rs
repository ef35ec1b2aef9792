//! Copies between strided and packed memory, one region after the other on the queue; gaps between elements are not
//! accessed.

use std::sync::Arc;

use pyo3::prelude::*;

use super::blocking::{finish, order};
use super::submit::{pointer, range};
use crate::errors::OrRaise;
use crate::in_flight::Visible;
use crate::resolve::ContextDevice;
use zeusm::suai::{Layout, Region};
use zeusm::{Completion, Error, Event, Queue, Rows};

/// The number of regions that are submitted before signals are looked for again: some milliseconds of work.
const BETWEEN_SIGNALS: usize = 4096;

/// A copy between strided and packed memory.
#[derive(Clone, Copy)]
pub(crate) struct StridedCopy {
    /// The address that the layout's offset is relative to.
    pub(crate) strided: usize,
    pub(crate) packed: usize,
    /// From the packed memory to the strided one.
    pub(crate) is_scatter: bool,
}

/// Copies the elements of a layout from or to packed memory, where they are in the layout's row-major order; then waits,
/// and returns the operands.
///
/// # Safety
/// `operands` must keep the extent of the layout on the strided side and `layout.nbytes()` bytes on the packed side valid,
/// each USM of the context or host memory.
pub(crate) unsafe fn copy_strided<T: Send + 'static>(
    py: Python<'_>,
    context_device: &Arc<ContextDevice>,
    layout: &Layout,
    sides: StridedCopy,
    operands: T,
) -> PyResult<T> {
    let (extent, size) = (layout.extent(), layout.nbytes());
    let first = sides.strided.wrapping_add_signed(extent.start);
    let touched = [range(first, extent.len()), range(sides.packed, size)];
    order(py, context_device, &touched)?;
    let mut visible = Visible::new(context_device, context_device, &touched);
    let submitted = append_all(py, context_device, &mut visible, layout, sides);
    // Also after an error, the operations submitted before it must be complete before the operands are returned.
    let operands = finish(py, visible, "copy", size, operands)?;
    submitted?;
    Ok(operands)
}

/// Submits the copy of each region without the GIL, and looks for signals in between, as a layout may have a region for each
/// of millions of elements. The event of `visible` is that of the last region submitted, also when an error is returned.
fn append_all(
    py: Python<'_>,
    context_device: &Arc<ContextDevice>,
    visible: &mut Visible<'_>,
    layout: &Layout,
    sides: StridedCopy,
) -> PyResult<()> {
    let mut regions = layout.regions();
    while regions.len() > 0 {
        let submitted = visible.detach(py, |last| -> Result<(), Error> {
            let queue = context_device.queue()?;
            for region in regions.by_ref().take(BETWEEN_SIGNALS) {
                // SAFETY: the caller of `copy_strided` guarantees the validity of both sides.
                *last = unsafe { append(queue, &region, sides) }?;
            }
            Ok(())
        });
        submitted.or_raise()?;
        py.check_signals()?;
    }
    Ok(())
}

/// # Safety
/// As for [`copy_strided`], and until the event is complete.
unsafe fn append(
    queue: &Queue,
    region: &Region,
    sides: StridedCopy,
) -> Result<Option<Event>, Error> {
    let Region {
        width,
        rows,
        slices,
        ..
    } = *region;
    let strided = Rows {
        first: sides.strided.wrapping_add_signed(region.start),
        pitch: region.pitch,
        slice_pitch: region.slice_pitch,
    };
    let packed = Rows {
        first: sides.packed + region.packed_start,
        pitch: width,
        slice_pitch: width * rows,
    };
    let (to, from) = match sides.is_scatter {
        true => (strided, packed),
        false => (packed, strided),
    };
    let (destination, source) = (pointer(to.first), pointer(from.first).cast_const());
    let (to, from) = (rows_at(to, destination), rows_at(from, source));
    // SAFETY: the caller guarantees the validity of both sides; the rows of a region do not overlap.
    unsafe {
        if rows * slices == 1 {
            queue.copy_raw(destination, source, width, Completion::Event)
        } else {
            queue.copy_rows_raw(to, from, [width, rows, slices], Completion::Event)
        }
    }
}

/// The same rows by a pointer to the first one.
fn rows_at<P>(rows: Rows<usize>, first: P) -> Rows<P> {
    Rows {
        first,
        pitch: rows.pitch,
        slice_pitch: rows.slice_pitch,
    }
}
