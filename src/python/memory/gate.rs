//! The gate: how an address leaves zeusm. It is given out once what is under way on the bytes is done, for the host and for
//! other packages, or is in order with what the receiver is about to submit, for zeusm's own queues.

use std::ffi::c_int;
use std::fmt;
use std::ops::Range;

use pyo3::ffi;
use pyo3::prelude::*;

use super::PyMemory;
use crate::python::depends::Dependencies;
use crate::python::{event, pending};
use crate::usm::UsmKind;
use crate::{Error, Event};

/// Where memory begins; 0 where there is none. What follows it passes the gate.
#[derive(Clone, Copy)]
pub(in crate::python) struct Address {
    number: usize,
    /// Whether it is a mapping of memory that this process may have at another address, too.
    is_mapped: bool,
}

impl Address {
    pub(in crate::python) fn new(number: usize) -> Self {
        Self {
            number,
            is_mapped: false,
        }
    }

    /// Of another process's memory, or one's own come back.
    pub(in crate::python) fn of_mapping(number: usize) -> Self {
        Self {
            number,
            is_mapped: true,
        }
    }

    /// The number: for reckoning and comparing, not to be followed.
    pub(in crate::python) fn number(self) -> usize {
        self.number
    }

    /// The same memory from another byte on.
    pub(in crate::python) fn moved(self, number: usize) -> Self {
        Self { number, ..self }
    }
}

impl fmt::LowerHex for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.number, formatter)
    }
}

impl PyMemory {
    /// For the host: waits for what zeusm and the memory's SYCL queue were given for these bytes.
    ///
    /// # Errors
    /// What a signal's handler raises while it waits; [`Error::Call`] for shared memory of a lost device.
    pub(in crate::python) fn for_host(
        &self,
        py: Python<'_>,
        touched: Range<usize>,
    ) -> PyResult<usize> {
        for event in self.under_way(touched) {
            event::wait(py, &event, None)?;
        }
        self.after_sycl(py)?;
        self.check_reachable()?;
        Ok(self.address.number)
    }

    /// For a request of the buffer protocol. What a `memoryview` asks for, which NumPy goes through too, is for the host;
    /// any other request comes from a program in C that may let a queue work on it: `dpctl.SyclQueue.memcpy_async` for one.
    ///
    /// Signals wait: NumPy takes any error here, `KeyboardInterrupt` too, for an object that has no buffer.
    pub(in crate::python) fn for_buffer(
        &self,
        py: Python<'_>,
        touched: Range<usize>,
        flags: c_int,
    ) -> PyResult<usize> {
        let under_way = self.under_way(touched);
        if !under_way.is_empty() {
            py.detach(|| under_way.iter().try_for_each(wait))?;
        }
        self.after_sycl(py)?;
        self.check_reachable()?;
        if flags != ffi::PyBUF_FULL_RO {
            self.reach.make_known();
        }
        Ok(self.address.number)
    }

    /// For a queue of zeusm's, to which work on these bytes is submitted next: what runs on others comes before it, see
    /// [`order`](crate::python::transfer::order).
    pub(in crate::python) fn for_queue(&self, py: Python<'_>) -> PyResult<usize> {
        self.after_sycl(py)?;
        self.check_reachable()?;
        Ok(self.address.number)
    }

    /// For an asynchronous operation, which comes after `dependencies`, and after what the memory's SYCL queue was given: in
    /// order or not, for its users are told of nothing that they could name as a dependency.
    pub(in crate::python) fn for_later(
        &self,
        py: Python<'_>,
        dependencies: &mut Dependencies,
    ) -> PyResult<usize> {
        if let Some(queue) = self.spot.queue(py)
            && self.reach.is_known()
            && queue.answers(py)
            && !queue.reference().is_idle()
        {
            // A barrier of an out-of-order queue would come after host tasks, too, which need the GIL. SYCL holds a lock
            // while it waits for such a barrier, and a thread that submits a kernel wants that lock and has the GIL.
            if queue.reference().is_in_order() {
                let queue = queue.reference();
                dependencies.add_sycl(py.detach(|| queue.barrier())?);
            } else {
                queue.finish(py)?;
            }
        }
        Ok(self.address.number)
    }

    /// For others, who can be told of nothing that is under way: waits for it, and remembers that there are others.
    pub(in crate::python) fn for_others(&self, py: Python<'_>) -> PyResult<usize> {
        for event in self.under_way(self.extent()) {
            event::wait(py, &event, None)?;
        }
        self.reach.make_known();
        Ok(self.address.number)
    }

    /// The addresses of the bytes, as the list of what is under way has them: of a mapping any, as the same bytes may be
    /// elsewhere, too.
    pub(in crate::python) fn extent(&self) -> Range<usize> {
        if self.address.is_mapped {
            0..usize::MAX
        } else {
            self.address.number..self.address.number + self.nbytes
        }
    }

    /// Whether the host may touch the bytes still.
    fn check_reachable(&self) -> Result<(), Error> {
        if self.kind == UsmKind::Shared {
            self.place().device().check_shared_memory()?;
        }
        Ok(())
    }

    /// The ends of what zeusm has under way on the bytes; nothing is on a lost device.
    fn under_way(&self, touched: Range<usize>) -> Vec<Event> {
        if self.place().device().check_not_lost().is_err() {
            return Vec::new();
        }
        let touched = if self.address.is_mapped {
            self.extent()
        } else {
            touched
        };
        pending::touching(&[touched], None)
    }

    /// Lets what was submitted to the memory's SYCL queue happen first: kernels on this memory, as far as can be known.
    /// An out-of-order queue, like those of dpctl and dpnp, would not order a copy after them either.
    fn after_sycl(&self, py: Python<'_>) -> PyResult<()> {
        if !self.reach.is_known() {
            return Ok(());
        }
        self.spot.queue(py).map_or(Ok(()), |queue| queue.finish(py))
    }
}

/// Waits without an eye on signals.
fn wait(event: &Event) -> Result<(), Error> {
    while !event.wait(None)? {}
    Ok(())
}
