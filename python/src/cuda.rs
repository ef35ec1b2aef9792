//! Copies between USM and CUDA memory. The GIL is released for the whole copy.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::resolve::ContextDevice;
use crate::transfer::{self, pointer, range};
use zeusm::cuda::{self, Interface};
use zeusm::suai::Layout;
use zeusm::{Completion, Queue};

/// Copies the elements of `layout`, which has those of `array` in some order, to USM at `to`, where they are packed.
///
/// # Safety
/// `operands` must keep the array's memory and enough USM of the context at `to` valid.
pub(crate) unsafe fn copy_from<T: Send>(
    py: Python<'_>,
    array: &Interface,
    layout: &Layout,
    context_device: &Arc<ContextDevice>,
    to: usize,
    operands: T,
) -> PyResult<T> {
    let queue = ordered(py, context_device, to, layout)?;
    let copied = py.detach(|| {
        let sink = |first, chunk, size| {
            // SAFETY: the caller guarantees that the destination is valid and large enough; the chunk is valid until this
            // returns, and the copy is complete then.
            unsafe { copy(queue, pointer(to.wrapping_add(first)), chunk, size) }
        };
        // SAFETY: the caller guarantees the validity of the array's memory.
        unsafe { cuda::read(array, layout, sink) }
    });
    copied.or_raise()?;
    Ok(operands)
}

/// Copies packed elements in USM at `from` to those of `layout`, as [`copy_from`] in the other direction.
///
/// # Safety
/// As for [`copy_from`].
pub(crate) unsafe fn copy_to<T: Send>(
    py: Python<'_>,
    array: &Interface,
    layout: &Layout,
    context_device: &Arc<ContextDevice>,
    from: usize,
    operands: T,
) -> PyResult<T> {
    let queue = ordered(py, context_device, from, layout)?;
    let copied = py.detach(|| {
        let source = |first, chunk, size| {
            // SAFETY: as for `copy_from`.
            unsafe { copy(queue, chunk, pointer(from.wrapping_add(first)), size) }
        };
        // SAFETY: the caller guarantees the validity of the array's memory.
        unsafe { cuda::write(array, layout, source) }
    });
    copied.or_raise()?;
    Ok(operands)
}

/// The queue of the USM side, after the operations in flight on its bytes.
fn ordered<'a>(
    py: Python<'_>,
    context_device: &'a Arc<ContextDevice>,
    usm: usize,
    layout: &Layout,
) -> PyResult<&'a Queue> {
    transfer::order(py, context_device, &[range(usm, layout.nbytes())])?;
    py.detach(|| context_device.queue()).or_raise()
}

/// Copies a chunk, and waits.
///
/// # Safety
/// Both ranges must be valid, USM of the queue's context or host memory.
unsafe fn copy(
    queue: &Queue,
    to: *mut std::ffi::c_void,
    from: *const std::ffi::c_void,
    size: usize,
) -> Result<(), cuda::Error> {
    // SAFETY: the caller guarantees the validity of both ranges.
    match unsafe { queue.copy_raw(to, from, size, Completion::SpinWait) }? {
        Some(event) => Ok(queue.finish(&event, "copy", size)?),
        None => Ok(()),
    }
}
