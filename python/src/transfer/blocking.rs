//! A blocking copy or fill.

use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use pyo3::prelude::*;

use super::submit::{pointer, range, submit_copy};
use crate::errors::{IntoException, OrRaise};
use crate::in_flight::{self, Visible};
use crate::interpreter::detach;
use crate::resolve::ContextDevice;
use zeusm::{Completion, Device, Error, Event, Queue};

/// The maximum size in bytes for which the GIL is held: releasing and reacquiring it costs as much as such a copy.
const SMALL: usize = 64 << 10;

/// One side of a copy.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    /// The context and device of USM; for host memory, those of the other side.
    pub(crate) owner: &'a Arc<ContextDevice>,
    pub(crate) address: usize,
    /// Whether the host itself can access it.
    pub(crate) by_host: bool,
}

impl Side<'_> {
    /// Host memory, the other side of a copy from or to this one.
    pub(crate) fn host(self, address: usize) -> Self {
        let by_host = true;
        Side {
            address,
            by_host,
            ..self
        }
    }
}

/// Copies `size` bytes on the queue of the destination, and waits. The host itself copies a small size if it can access both sides
/// and no operation is in flight that has to precede the copy.
///
/// # Safety
/// `operands` must keep both ranges valid, each USM of its side's context or host memory; with `by_host`, memory that the host can
/// access.
pub(crate) unsafe fn copy<T: Send + 'static>(
    py: Python<'_>,
    to: Side<'_>,
    from: Side<'_>,
    size: usize,
    operands: T,
) -> PyResult<T> {
    let (destination, source) = (to.address, from.address);
    let operation = Operation {
        name: "copy",
        size,
        touched: &[range(destination, size), range(source, size)],
        sides: [to, from],
        // One of the operations of such a copy may fail after others of it were submitted.
        may_wait: !Arc::ptr_eq(to.owner, from.owner) || zeusm::overlap(destination, source, size),
    };
    operation.run(
        py,
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
            let from = from.owner.queue()?;
            submit_copy(queue, destination, from, source, size, completion)
        },
    )
}

/// Fills `size` bytes, in the same way as [`copy`].
///
/// # Safety
/// As there.
pub(crate) unsafe fn fill<T: Send + 'static>(
    py: Python<'_>,
    to: Side<'_>,
    value: u8,
    size: usize,
    operands: T,
) -> PyResult<T> {
    let destination = to.address;
    let operation = Operation {
        name: "fill",
        size,
        touched: &[range(destination, size)],
        sides: [to, to],
        may_wait: false,
    };
    operation.run(
        py,
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
    /// What is written, and what is read.
    sides: [Side<'a>; 2],
    /// Whether the submission may wait for operations before it, which may need the GIL.
    may_wait: bool,
}

impl Operation<'_> {
    /// Calls `execute` if the host itself may execute the operation now, else `submit`, and waits.
    #[inline]
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        operands: T,
        execute: impl FnOnce(),
        submit: impl FnOnce(&Queue, Completion) -> zeusm::Result<Option<Event>> + Send,
    ) -> PyResult<T> {
        let [to, from] = self.sides.map(|side| side.owner);
        let ordered = order(py, to, self.touched)?;
        let is_small = self.size <= SMALL;
        let by_host = self.sides[0].by_host && self.sides[1].by_host;
        let are_settled = || to.is_settled() && (Arc::ptr_eq(to, from) || from.is_settled());
        if is_small && by_host && !ordered && are_settled() {
            execute();
            return Ok(operands);
        }
        let queue = to.queue().or_raise()?;
        let mut visible = Visible::new(to, from, self.touched);
        let completion = match is_small {
            true => Completion::SpinWait,
            false => Completion::Event,
        };
        // Intel's driver executes small copies of a discrete GPU within the submission, after the work before them, which may be
        // that of another package.
        let submitted = if is_small && !self.may_wait && to.device().is_integrated() {
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
    let mut before = in_flight::using(py, touched, Some(context_device), true)?;
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
    let Some(event) = &visible.event else {
        return Ok(operands);
    };
    let context_device = visible.context_device;
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
                    context_device.queue()?.finish(event, operation, size)
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
    // The device still uses the operands.
    let touched = visible.touched.to_vec();
    let kept = detach(py, || {
        in_flight::retain(context_device, event, touched, operands)
    });
    drop(kept.or_raise()?);
    Err(interrupted)
}
