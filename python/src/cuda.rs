//! Copies between USM and CUDA memory. The GIL is released for the whole copy.

use std::ffi::c_void;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::in_flight::Visible;
use crate::resolve::ContextDevice;
use crate::transfer::{self, pointer, range};
use zeusm::cuda::{self, Interface};
use zeusm::suai::Layout;
use zeusm::{Completion, Queue};

/// The direction of a copy.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    ToUsm,
    ToCuda,
}

/// Copies between the elements of `layout`, which has those of `array` in some order, and USM at `usm`, where they are packed.
///
/// # Safety
/// `operands` must keep the array's memory and enough USM of the context at `usm` valid.
pub(crate) unsafe fn copy<T: Send>(
    py: Python<'_>,
    direction: Direction,
    array: &Interface,
    layout: &Layout,
    context_device: &Arc<ContextDevice>,
    usm: usize,
    operands: T,
) -> PyResult<T> {
    let touched = [range(usm, layout.nbytes())];
    transfer::order(py, context_device, &touched)?;
    let mut visible = Visible::new(context_device, context_device, &touched);
    let copied = visible.detach(py, |_| {
        let queue = context_device.queue()?;
        let packed = |first| pointer(usm.wrapping_add(first));
        // SAFETY: the caller guarantees the validity of both sides; a chunk is valid until the closure returns, and the copy
        // is complete then.
        unsafe {
            match direction {
                Direction::ToUsm => cuda::read(array, layout, |first, chunk, size| {
                    copy_chunk(queue, packed(first), chunk, size)
                }),
                Direction::ToCuda => cuda::write(array, layout, |first, chunk, size| {
                    copy_chunk(queue, chunk, packed(first), size)
                }),
            }
        }
    });
    copied.or_raise()?;
    Ok(operands)
}

/// Copies a chunk, and waits.
///
/// # Safety
/// Both ranges must be valid, USM of the queue's context or host memory.
unsafe fn copy_chunk(
    queue: &Queue,
    to: *mut c_void,
    from: *const c_void,
    size: usize,
) -> Result<(), cuda::Error> {
    // SAFETY: the caller guarantees the validity of both ranges.
    match unsafe { queue.copy_raw(to, from, size, Completion::SpinWait) }? {
        Some(event) => Ok(queue.finish(&event, "copy", size)?),
        None => Ok(()),
    }
}
