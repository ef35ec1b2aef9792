//! A blocking copy or fill within one context and device.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::errors::{IntoException, OrRaise};
use crate::in_flight::{self, Visible};
use crate::interpreter::detach;
use crate::resolve::ContextDevice;
use zeusm::{Completion, Device, Error, Event, Queue};

/// The maximum size in bytes for which the GIL is held: releasing and reacquiring it costs as much as such a copy.
pub(super) const SMALL: usize = 64 << 10;

/// Copies `size` bytes on the queue of `context_device`, and waits. The host itself copies a small size if it can access
/// both sides (`by_host`) and no operation is in flight that has to precede the copy.
///
/// # Safety
/// `operands` must keep both ranges valid, each USM of the context or host memory; with `by_host`, memory that the host can
/// access.
pub(crate) unsafe fn copy<T: Send + 'static>(
    py: Python<'_>,
    context_device: &Arc<ContextDevice>,
    destination: usize,
    source: usize,
    size: usize,
    by_host: bool,
    operands: T,
) -> PyResult<T> {
    let operation = Operation {
        name: "copy",
        size,
        touched: &[range(destination, size), range(source, size)],
        by_host,
        // One of the operations of such a copy may fail after others of it were submitted.
        may_wait: zeusm::overlap(destination, source, size),
    };
    operation.run(
        py,
        context_device,
        operands,
        // SAFETY: the caller guarantees the validity of the ranges, which may overlap.
        || unsafe {
            ptr::copy(
                pointer(source).cast::<u8>(),
                pointer(destination).cast(),
                size,
            )
        },
        // SAFETY: the caller guarantees the validity of the ranges.
        |queue, completion| unsafe {
            queue.copy_raw(pointer(destination), pointer(source), size, completion)
        },
    )
}

/// Fills `size` bytes, in the same way as [`copy`].
///
/// # Safety
/// `operands` must keep the range valid, which must be USM of the context; with `by_host`, memory that the host can
/// access.
pub(crate) unsafe fn fill<T: Send + 'static>(
    py: Python<'_>,
    context_device: &Arc<ContextDevice>,
    destination: usize,
    value: u8,
    size: usize,
    by_host: bool,
    operands: T,
) -> PyResult<T> {
    let operation = Operation {
        name: "fill",
        size,
        touched: &[range(destination, size)],
        by_host,
        may_wait: false,
    };
    operation.run(
        py,
        context_device,
        operands,
        // SAFETY: the caller guarantees the validity of the range.
        || unsafe { ptr::write_bytes(pointer(destination).cast::<u8>(), value, size) },
        // SAFETY: the caller guarantees the validity of the range.
        |queue, completion| unsafe {
            queue.fill_raw(pointer(destination), value, size, completion)
        },
    )
}

/// A copy or a fill.
struct Operation<'a> {
    name: &'static str,
    size: usize,
    touched: &'a [Range<usize>],
    by_host: bool,
    /// Whether the submission may wait for operations before it, which may need the GIL.
    may_wait: bool,
}

impl Operation<'_> {
    /// Calls `execute` if the host itself may execute the operation now, else `submit`, and waits.
    #[inline]
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        context_device: &Arc<ContextDevice>,
        operands: T,
        execute: impl FnOnce(),
        submit: impl FnOnce(&Queue, Completion) -> zeusm::Result<Option<Event>> + Send,
    ) -> PyResult<T> {
        let ordered = order(py, context_device, self.touched)?;
        let is_small = self.size <= SMALL;
        if is_small && self.by_host && !ordered && context_device.is_settled() {
            execute();
            return Ok(operands);
        }
        let queue = context_device.queue().or_raise()?;
        let mut visible = Visible::new(context_device, context_device, self.touched);
        let completion = match is_small {
            true => Completion::SpinWait,
            false => Completion::Event,
        };
        // Intel's driver executes small copies of a discrete GPU within the submission, after the work before them, which may be
        // that of another package.
        let submitted = if is_small && !self.may_wait && context_device.device().is_integrated() {
            visible.submit_small(|| submit(queue, completion))
        } else {
            visible.detach(py, |event| -> Result<(), Error> {
                *event = submit(queue, completion)?;
                Ok(())
            })
        };
        submitted.or_raise()?;
        finish(py, visible, self.name, self.size, operands)
    }
}

/// Orders later operations on the queue of `context_device` after the operations that other queues have in flight on the
/// same bytes; returns whether there are such operations.
#[inline]
pub(crate) fn order(
    py: Python<'_>,
    context_device: &Arc<ContextDevice>,
    touched: &[Range<usize>],
) -> PyResult<bool> {
    if !in_flight::any() {
        return Ok(false);
    }
    let mut before = in_flight::using(py, touched, Some(context_device), || py.check_signals())?;
    if before.is_empty() {
        return Ok(false);
    }
    detach(py, || {
        let is_alive = |device: &Device| device.check_alive().is_ok();
        // A lost device does not access the bytes any more.
        before
            .retain(|event| event.device() == context_device.device() || is_alive(event.device()));
        context_device.queue()?.barrier(&before)
    })
    .or_raise()?;
    Ok(true)
}

/// Waits without the GIL for an operation that did not complete within the spin wait; returns the operands.
///
/// # Errors
/// The exception of a signal handler, or the operation's error. The operands are then retained until the operation is
/// complete.
pub(crate) fn finish<T: Send + 'static>(
    py: Python<'_>,
    visible: Visible<'_>,
    operation: &'static str,
    size: usize,
    operands: T,
) -> PyResult<T> {
    let Some(event) = visible.event() else {
        return Ok(operands);
    };
    let context_device = visible.context_device();
    let interrupted = loop {
        match detach(py, || event.wait(Some(in_flight::SLICE))) {
            Ok(true) => return Ok(operands),
            Ok(false) => {
                if let Err(raised) = py.check_signals() {
                    break raised;
                }
            }
            // The queue waits once more, so that the operation is complete unless the device is lost.
            Err(cause) => {
                match detach(py, || {
                    context_device.queue()?.finish(&event, operation, size)
                }) {
                    Ok(()) => {
                        let device = format!("{}", context_device.device());
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
                }
            }
        }
    };
    // First, as the device still uses the operands, and the registration may fail.
    drop(detach(py, || visible.retain(&event, operands)).or_raise()?);
    if let Err(error) = in_flight::drain_at_exit(py) {
        error.write_unraisable(py, None);
    }
    Err(interrupted)
}

/// The addresses of `size` bytes.
pub(crate) fn range(first: usize, size: usize) -> Range<usize> {
    first..first.saturating_add(size)
}

/// The pointer of an address.
pub(crate) fn pointer(address: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address)
}
