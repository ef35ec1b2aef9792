//! Sharing a part of the memory, and freeing it.

use pyo3::PyTraverseError;
use pyo3::exceptions::{PyBaseException, PyBufferError, PyTypeError, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

use std::sync::Arc;

use super::base::PyMemory;
use super::classes::object;
use super::owner::Owner;
use crate::errors::OrRaise;
use crate::in_flight;
use crate::interpreter::detach;
use crate::ordered;
use crate::pins::Close;
use crate::resolve;
use crate::shown::text;
use crate::stacks;

#[pymethods]
impl PyMemory {
    /// An object of the same kind that shares a part of the memory: `memory[16:32]`, with a step of 1.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Self>> {
        let memory = slf.get();
        let slice = index.cast::<PySlice>().map_err(|_| {
            PyTypeError::new_err(
                "USM memory is cut by slices: memory[i:i+1].tobytes() reads one byte, memory[i:i+1] = bytes([value]) sets it, and \
                 memoryview() of shared and host memory does both",
            )
        })?;
        let range = slice.indices(memory.nbytes.cast_signed())?;
        if range.step != 1 {
            return Err(PyValueError::new_err(format!(
                "the step of a slice of USM memory must be 1, not {}",
                range.step
            )));
        }
        let mut part = memory.share(slf.py())?;
        part.nbytes = range.slicelength;
        part.terms = part.terms.aligned(0);
        // A part without bytes has a null pointer, as a new object without bytes has.
        part.address = match part.nbytes {
            0 => 0,
            _ => memory.address + range.start.unsigned_abs(),
        };
        object(slf.py(), part)
    }

    /// Whether the object is closed.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> with zm.MemoryUSMDevice(8) as memory:
    /// ...     memory.closed
    /// False
    /// >>> memory.closed
    /// True
    #[getter]
    fn closed(&self) -> bool {
        self.pins.is_closed()
    }

    /// Frees the memory now, or drops the reference to the object that owns it. Closing again has no effect.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     While the memory is in use: by a memoryview or an array, an operation in flight, another object that shares it,
    ///     or, after `__sycl_usm_array_interface__` was read or where it owns an import, possibly by another package. To
    ///     free the memory when it is no longer in use, drop all references to it instead. At the end of a `with` block that
    ///     has raised an exception, the refusal is a note of that exception.
    /// zeusm.LevelZeroError
    ///     If the memory is in use and its device is lost.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMShared(8)
    /// >>> view = memoryview(memory)
    /// >>> memory.close()
    /// Traceback (most recent call last):
    /// ...
    /// BufferError: ...
    /// >>> view.release()
    /// >>> memory.close()
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.try_close(py) {
            // Operations that are complete may have had their operands.
            Err(error) if error.is_instance_of::<PyBufferError>(py) => {
                in_flight::reclaim(py);
                self.try_close(py)
            }
            result => result,
        }
    }

    /// Has the memory freed, after its last reference is dropped or it is closed, when the work is complete that was submitted
    /// to a SYCL queue until then: that of kernels on another queue than the memory's, which zeusm does not know of.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     For memory of another package or process, and closed memory.
    ///
    /// Examples
    /// --------
    /// >>> import dpctl, zeusm.memory as zm
    /// >>> memory, queue = zm.MemoryUSMDevice(64), dpctl.SyclQueue("level_zero:gpu")
    /// >>> memory.record_queue(queue)
    fn record_queue(&self, queue: &Bound<'_, PyAny>) -> PyResult<()> {
        let _pin = self.pins.pin()?;
        let binding = resolve::binding(queue, "queue")?;
        let Some(queue) = binding.queue() else {
            return Err(PyTypeError::new_err(
                "queue must be a dpctl.SyclQueue: a context has no work of its own",
            ));
        };
        let queue = queue.reference().clone();
        let frees = self.context_device().frees().or_raise()?;
        match &*self.owner.lock() {
            Some(Owner::Allocation(memory)) => ordered::record(memory, frees, queue),
            Some(Owner::Shared(memory)) => ordered::record(memory, frees, queue),
            _ => {
                return Err(PyValueError::new_err(
                    "the memory belongs to another package or process, which frees it",
                ));
            }
        }
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().pins.pin()?;
        Ok(slf)
    }

    /// Closes the memory. If the block has raised an exception, a refusal to close becomes a note of that exception, which
    /// would be hidden otherwise: its traceback often keeps the memory in use.
    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let Err(refusal) = self.close(py) else {
            return Ok(());
        };
        match exception.get_item(1) {
            Ok(raised) if raised.is_instance_of::<PyBaseException>() => {
                let note = format!("The memory was not closed: {}", text(refusal.value(py))?);
                raised.call_method1("add_note", (note,)).map(drop)
            }
            _ => Err(refusal),
        }
    }

    // There is no __clear__, as the owner must be kept as long as there is a pointer to the memory. The garbage collector
    // breaks a reference cycle at another object.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.owner.try_lock().as_deref() {
            Some(Some(Owner::Object(object))) => visit.call(object),
            _ => Ok(()),
        }
    }
}

impl PyMemory {
    fn try_close(&self, py: Python<'_>) -> PyResult<()> {
        let views = self.views.count(py);
        let close = match views {
            0 => self.pins.close(),
            _ => Close::Pinned(views + self.pins.count()),
        };
        let closing = match close {
            Close::Begun(closing) => closing,
            Close::Closed => return Ok(()),
            Close::Pinned(pins) => {
                // Operations on a lost device never complete; the loss is the cause.
                detach(py, || {
                    self.context_device().device().check_alive_after_error()
                })
                .or_raise()?;
                return Err(PyBufferError::new_err(format!(
                    "the memory cannot be closed while memoryviews, arrays or operations use it ({pins} do): delete these \
                     objects, or wait for the operations"
                )));
            }
        };
        self.check_unshared().map_err(PyBufferError::new_err)?;
        let owner = self.owner.lock().take();
        closing.finish();
        let _scope = stacks::scope(py);
        match owner {
            // The drop may wait for the device.
            Some(Owner::Object(object)) => drop(object),
            owner => detach(py, || drop(owner)),
        }
        Ok(())
    }

    /// Checks that no other object or package uses the memory, as far as zeusm can determine; the error message has the
    /// user.
    fn check_unshared(&self) -> Result<(), &'static str> {
        let owner = self.owner.lock();
        let owners = match &*owner {
            Some(Owner::Shared(allocation)) => Arc::strong_count(allocation),
            Some(Owner::Mapping(mapping)) => Arc::strong_count(mapping),
            _ => 1,
        };
        match &*owner {
            Some(_) if owners > 1 => {
                Err("the memory cannot be closed while other objects share it")
            }
            Some(_) if self.export_state.is_exported() => Err(
                "the memory cannot be closed: its __sycl_usm_array_interface__ was read, or it owns an import, so other packages \
                 may use it; drop the references to it instead",
            ),
            _ => Ok(()),
        }
    }
}
