//! The properties of a memory object.

use once_cell::race::OnceBox;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::base::PyMemory;
use super::owner::Owner;
use crate::getters::getters;
use crate::interpreter::{intern, size_alone};
use crate::{dpctl, parse, shown};
use zeusm::usm::UsmKind;
use zeusm_process::Bytes;

#[pymethods]
impl PyMemory {
    /// Address of the first byte; 0 without bytes.
    #[getter]
    fn _pointer(&self, py: Python<'_>) -> PyResult<usize> {
        let _pin = self.pins.pin()?;
        self.for_export(py)
    }

    /// The size in bytes of the object and of the memory, as of dpctl's objects.
    fn __sizeof__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Ok(size_alone(slf.as_any())? + slf.get().nbytes)
    }

    /// The object that owns the memory; None when zeusm does.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> import dpctl.memory
    /// >>> theirs = dpctl.memory.MemoryUSMShared(8)
    /// >>> zm.MemoryUSMShared(8).reference_obj is None, zm.as_usm_memory(theirs).reference_obj is theirs
    /// (True, True)
    #[getter]
    fn reference_obj(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match &*self.owner.lock() {
            Some(Owner::Object(object)) => Some(object.clone_ref(py)),
            _ => None,
        }
    }

    /// The same as `sycl_context`.
    #[getter]
    fn _context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.sycl_context(py)
    }

    /// The same as `sycl_queue`.
    #[getter]
    fn _queue(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.sycl_queue(py)
    }

    /// The interface for other packages to use the memory in place.
    ///
    /// `data` (address, read-only), `shape` in bytes, `strides` None, `offset` 0, `typestr` `"|u1"`, `version` 1, and
    /// `syclobj`, a new `SyclContextRef` capsule for each read.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     When the memory is in no SYCL context; the message has the reason and the remedy.
    #[getter]
    fn __sycl_usm_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let _pin = self.pins.pin()?;
        let syclobj = dpctl::new_capsule(py, self.context_device().sycl()?)?;
        let address = self.for_export(py)?;
        self.export_state.mark_exported();
        let dictionary = template(py)?.copy()?;
        dictionary.set_item(intern!(py, "data"), (address, self.terms.is_read_only()))?;
        dictionary.set_item(intern!(py, "shape"), (self.nbytes,))?;
        dictionary.set_item(intern!(py, "syclobj"), syclobj)?;
        Ok(dictionary)
    }

    /// Kind of the memory: 'shared', 'device' or 'host'; 'unknown' for a context in which it is not USM.
    ///
    /// Parameters
    /// ----------
    /// syclobj : optional
    ///     A SYCL object whose context is queried; by default the memory's own.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> zm.MemoryUSMShared(8).get_usm_type()
    /// 'shared'
    #[pyo3(signature = (syclobj=None))]
    fn get_usm_type(&self, syclobj: Option<&Bound<'_, PyAny>>) -> PyResult<&'static str> {
        Ok(self.kind_in(syclobj)?.map_or("unknown", UsmKind::name))
    }

    /// Kind of the memory as SYCL's number: 1 device, 2 shared, 3 host; 0 for a context in which it is not USM.
    ///
    /// Parameters
    /// ----------
    /// syclobj : optional
    ///     A SYCL object whose context is queried; by default the memory's own.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> [kind(8).get_usm_type_enum() for kind in (zm.MemoryUSMDevice, zm.MemoryUSMShared, zm.MemoryUSMHost)]
    /// [1, 2, 3]
    #[pyo3(signature = (syclobj=None))]
    fn get_usm_type_enum(&self, syclobj: Option<&Bound<'_, PyAny>>) -> PyResult<i32> {
        Ok(self.kind_in(syclobj)?.map_or(0, parse::kind_number))
    }

    fn __len__(&self) -> usize {
        self.nbytes
    }

    fn __repr__(&self) -> String {
        let (kind, bytes, address) = (self.kind, self.nbytes, self.address);
        let state = self.state();
        format!("<zeusm USM-{kind} memory of {bytes} bytes at {address:#x}{state}>")
    }

    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let cells = [
            ("Kind", format!("{}", self.kind)),
            ("Size", format!("{}", Bytes(self.nbytes as u64))),
            ("Address", format!("{:#x}", self.address)),
            ("Device", format!("{}", self.context_device().device())),
        ];
        shown::table(py, &format!("zeusm memory{}", self.state()), &cells, "")
    }
}

impl PyMemory {
    fn state(&self) -> &'static str {
        match self.pins.is_closed() {
            true => ", closed",
            false => "",
        }
    }
}

getters! {
    PyMemory,
    ">>> import zeusm.memory as zm\n\
     >>> memory = zm.MemoryUSMShared(8)";

    /// Size of the memory in bytes.
    "memory.nbytes" => "8"
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// Size of the memory in bytes.
    "memory.size" => "8"
    fn size(&self) -> usize {
        self.nbytes
    }

    /// The `dpctl.SyclContext` that the memory is bound to.
    "memory.sycl_context == memory.sycl_queue.sycl_context" => "True"
    fn sycl_context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.binding.queue() {
            Some(queue) => queue.object().bind(py).getattr("sycl_context"),
            None => self.context_device().new_sycl_context(py),
        }
    }

    /// The `dpctl.SyclDevice` that the memory was allocated for.
    "memory.sycl_device.backend.name" => "'level_zero'"
    fn sycl_device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.binding.queue() {
            Some(queue) => queue.object().bind(py).getattr("sycl_device"),
            None => self.context_device().sycl_device(py),
        }
    }

    /// A `dpctl.SyclQueue` of the memory's context and device: the one passed at construction, else dpctl's cached queue.
    "memory.sycl_queue.sycl_context == memory.sycl_context" => "True"
    fn sycl_queue(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let queue = self.binding.queue_or_cached(py)?;
        Ok(queue.object().clone_ref(py))
    }
}

/// The fields of the interface that are the same for all memory objects. Copying this dictionary is cheaper than building
/// one.
fn template(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static TEMPLATE: OnceBox<Py<PyDict>> = OnceBox::new();
    let template = TEMPLATE.get_or_try_init(|| -> PyResult<_> {
        let dictionary = PyDict::new(py);
        dictionary.set_item(intern!(py, "data"), py.None())?;
        dictionary.set_item(intern!(py, "shape"), py.None())?;
        dictionary.set_item(intern!(py, "strides"), py.None())?;
        dictionary.set_item(intern!(py, "offset"), 0)?;
        dictionary.set_item(intern!(py, "typestr"), "|u1")?;
        dictionary.set_item(intern!(py, "version"), 1)?;
        dictionary.set_item(intern!(py, "syclobj"), py.None())?;
        Ok(Box::new(dictionary.unbind()))
    })?;
    Ok(template.bind(py))
}
