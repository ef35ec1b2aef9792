//! Sharing a part of the memory, and freeing it.

use pyo3::PyTraverseError;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PySlice;

use std::sync::Arc;

use super::{Address, Owner, PyMemory, object};
use crate::pins::Close;

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
                "USM memory is cut by slices; for single bytes use memoryview() or copy_to_host()",
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
        part.alignment_bits = 0;
        // A part without bytes has a null pointer, as a new object without bytes has.
        part.address = if part.nbytes == 0 {
            Address::new(0)
        } else {
            let address = memory.address;
            address.moved(address.number() + range.start.unsigned_abs())
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
    ///     or, after `__sycl_usm_array_interface__` was read, possibly by another package. To free the memory when it is no
    ///     longer in use, drop all references to it instead.
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
        let closing = match self.pins.close() {
            Close::Begun(closing) => closing,
            Close::Closed => return Ok(()),
            Close::Pinned(pins) => {
                return Err(PyBufferError::new_err(format!(
                    "the memory cannot be closed while {pins} memoryviews, arrays or operations use it"
                )));
            }
        };
        self.check_unshared().map_err(PyBufferError::new_err)?;
        let owner = self.owner.lock().take();
        closing.finish();
        match owner {
            // The drop may wait for the device.
            Some(Owner::Allocation(allocation)) => py.detach(|| drop(allocation)),
            Some(Owner::Shared(allocation)) => py.detach(|| drop(allocation)),
            Some(Owner::Object(object)) => drop(object),
            Some(Owner::Mapping(mapping)) => py.detach(|| drop(mapping)),
            None => {}
        }
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().pins.pin()?;
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<()> {
        self.close(py)
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
                "the memory cannot be closed: its __sycl_usm_array_interface__ was read, so other packages may use it; \
                 drop the references to it instead",
            ),
            _ => Ok(()),
        }
    }
}
