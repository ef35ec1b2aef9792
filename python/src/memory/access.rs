//! How an address is given out: for the host and for other packages once the operations in flight on the bytes are complete,
//! for zeusm's own queues in order with what is submitted next.

use std::ffi::c_int;
use std::fmt;
use std::ops::Range;

use pyo3::ffi;
use pyo3::prelude::*;

use super::PyMemory;
use crate::errors::OrRaise;
use crate::event::WaitList;
use crate::in_flight;
use zeusm::usm::UsmKind;
use zeusm::{Error, Event};

/// The address of the first byte; 0 where there is none. To use it, take it from one of the methods `for_*`.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    number: usize,
    /// Whether it is of a mapping, whose bytes this process may have at another address, too.
    is_mapped: bool,
}

impl Address {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            number,
            is_mapped: false,
        }
    }

    /// Of a mapping of another process's memory, or of this process's own.
    pub(crate) fn of_mapping(number: usize) -> Self {
        Self {
            number,
            is_mapped: true,
        }
    }

    /// The number: to compute and compare with, not to be dereferenced.
    pub(crate) fn number(self) -> usize {
        self.number
    }

    /// Another address in the same memory.
    pub(crate) fn moved(self, number: usize) -> Self {
        Self { number, ..self }
    }
}

impl fmt::LowerHex for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.number, formatter)
    }
}

impl PyMemory {
    /// For the host: waits for the operations on these bytes, zeusm's and those of the memory's SYCL queue.
    ///
    /// # Errors
    /// What a signal handler raises while it waits; [`Error::Call`] for shared memory of a lost device.
    pub(crate) fn for_host(&self, py: Python<'_>, touched: Range<usize>) -> PyResult<usize> {
        for event in self.in_flight(touched) {
            in_flight::wait(py, &event, None)?;
        }
        self.after_sycl(py)?;
        self.check_accessible()?;
        Ok(self.address.number)
    }

    /// For a request of the buffer protocol. The request of a `memoryview`, which NumPy makes too, is for the host; any
    /// other comes from C code that may submit work on it to a queue: `dpctl.SyclQueue.memcpy_async` for one.
    ///
    /// Signals are not handled: NumPy takes any error here, `KeyboardInterrupt` too, for an object that has no buffer.
    pub(crate) fn for_buffer(
        &self,
        py: Python<'_>,
        touched: Range<usize>,
        flags: c_int,
    ) -> PyResult<usize> {
        let in_flight = self.in_flight(touched);
        if !in_flight.is_empty() {
            py.detach(|| in_flight.iter().try_for_each(wait))
                .or_raise()?;
        }
        self.after_sycl(py)?;
        self.check_accessible()?;
        if flags != ffi::PyBUF_FULL_RO {
            self.export_state.mark_shared();
        }
        Ok(self.address.number)
    }

    /// For an operation that is submitted to a queue of zeusm's next; [`order`](crate::transfer::order) has it wait for
    /// other queues.
    pub(crate) fn for_queue(&self, py: Python<'_>) -> PyResult<usize> {
        self.after_sycl(py)?;
        self.check_accessible()?;
        Ok(self.address.number)
    }

    /// For an asynchronous operation, which waits for `wait_list` and for the memory's SYCL queue, in order or not: users
    /// of that queue have no event of its work to pass as a dependency.
    pub(crate) fn for_async(&self, py: Python<'_>, wait_list: &mut WaitList) -> PyResult<usize> {
        if let Some(queue) = self.binding.queue(py)
            && self.export_state.is_shared()
            && queue.responds(py)
            && !queue.reference().is_idle()
        {
            // A barrier of an out-of-order queue waits for host tasks, too, which need the GIL. SYCL holds a lock during
            // that wait, and a thread that submits a kernel holds the GIL and needs the lock.
            if queue.reference().is_in_order() {
                let queue = queue.reference();
                wait_list.add_sycl(py.detach(|| queue.barrier()).or_raise()?);
            } else {
                queue.finish(py)?;
            }
        }
        Ok(self.address.number)
    }

    /// For other packages, which cannot wait for zeusm's events: waits for the operations in flight, and marks the memory as
    /// shared.
    pub(crate) fn for_export(&self, py: Python<'_>) -> PyResult<usize> {
        for event in self.in_flight(self.extent()) {
            in_flight::wait(py, &event, None)?;
        }
        self.export_state.mark_shared();
        Ok(self.address.number)
    }

    /// The addresses of the bytes in the table of operations in flight. A mapping has all addresses, as its bytes may be
    /// mapped elsewhere, too.
    pub(crate) fn extent(&self) -> Range<usize> {
        if self.address.is_mapped {
            0..usize::MAX
        } else {
            self.address.number..self.address.number + self.nbytes
        }
    }

    /// Refuses shared memory of a lost device, at whose access Intel's driver ends the process.
    fn check_accessible(&self) -> PyResult<()> {
        if self.kind == UsmKind::Shared {
            self.context_device()
                .device()
                .check_shared_memory()
                .or_raise()?;
        }
        Ok(())
    }

    /// The events of the operations that zeusm has in flight on the bytes; none on a lost device.
    fn in_flight(&self, touched: Range<usize>) -> Vec<Event> {
        if self.context_device().device().check_not_lost().is_err() {
            return Vec::new();
        }
        let touched = if self.address.is_mapped {
            self.extent()
        } else {
            touched
        };
        in_flight::using(&[touched], None)
    }

    /// Waits for the memory's SYCL queue, which may have kernels on this memory. An out-of-order queue, such as dpctl's and
    /// dpnp's, would not order a copy after them.
    fn after_sycl(&self, py: Python<'_>) -> PyResult<()> {
        if !self.export_state.is_shared() {
            return Ok(());
        }
        self.binding
            .queue(py)
            .map_or(Ok(()), |queue| queue.finish(py))
    }
}

/// Waits without handling signals.
fn wait(event: &Event) -> Result<(), Error> {
    while !event.wait(None)? {}
    Ok(())
}
