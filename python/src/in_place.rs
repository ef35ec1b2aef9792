//! `MemoryUSMHost.from_host`: memory of other Python objects as host memory, where it is.

use std::ptr::{self, NonNull};

use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::interpreter::detach;
use crate::memory::{MemoryUSMHost, Owner, PyMemory, Terms, object};
use crate::parse::HostBuffer;
use crate::resolve::{BindingRef, binding_or_default};
use crate::traced::Traced;
use zeusm::usm::{Allocation, UsmKind};

#[pymethods]
impl MemoryUSMHost {
    /// Makes the memory of another object host memory, where it is, without a copy: of a NumPy array, an `mmap`, shared memory or
    /// a `bytearray`. Device work on it uses those bytes, and the object keeps them alive.
    ///
    /// The memory cannot be shared with other processes, and pages of which a part is in use in place cannot be used for other
    /// bytes. The program must not unmap or replace the pages behind the exporter's back.
    ///
    /// Parameters
    /// ----------
    /// buffer : object
    ///     A writable C-contiguous buffer.
    /// queue : optional
    ///     The context and the device, as for `MemoryUSMShared`.
    ///
    /// Returns
    /// -------
    /// MemoryUSMHost
    ///     The bytes of the buffer.
    ///
    /// Raises
    /// ------
    /// USMAllocationError
    ///     When the driver cannot do it; the message has the reason. A copy does the same:
    ///     `MemoryUSMHost(n).copy_from_host(buffer)`.
    /// BufferError or ValueError
    ///     For a buffer that is read-only or not contiguous.
    /// TypeError
    ///     For an object without the buffer protocol.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> data = bytearray(b"abcd")
    /// >>> memory = zm.MemoryUSMHost.from_host(data)
    /// >>> memory.memset(65)
    /// >>> data
    /// bytearray(b'AAAA')
    #[staticmethod]
    #[pyo3(signature = (buffer, *, queue=None))]
    fn from_host<'py>(
        buffer: &Bound<'py, PyAny>,
        queue: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyMemory>> {
        let py = buffer.py();
        let binding = binding_or_default(py, queue, "queue")?;
        let host = HostBuffer::in_place(buffer)?;
        let (address, size) = (host.address(), host.size());
        let here = binding.context_device();
        let allocation = detach(py, || {
            let first = NonNull::new(ptr::with_exposed_provenance_mut(address));
            let bytes = NonNull::slice_from_raw_parts(first.unwrap_or(NonNull::dangling()), size);
            // SAFETY: the exporter keeps the bytes where they are until the buffer, which owns them, is dropped.
            unsafe { Allocation::from_host(here.context(), here.device(), bytes, Box::new(host)) }
        })
        .or_raise()?;
        let pointer = allocation.as_ptr().expose_provenance();
        let owner = Owner::Allocation(Traced::new(py, allocation));
        let binding = BindingRef::new(&binding);
        let memory = PyMemory::new(
            binding,
            pointer,
            size,
            UsmKind::Host,
            Terms::new(false),
            owner,
        );
        object(py, memory)
    }
}
