//! The three classes, one for each kind of USM. Their constructors are in [`construct`](crate::construct).

use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView, PyType};

use super::base::PyMemory;
use crate::imports;
use crate::interpreter::intern;
use zeusm::usm::UsmKind;

/// Defines a class.
macro_rules! class {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[pyclass(extends = PyMemory, module = "zeusm.memory", subclass, frozen)]
        pub(crate) struct $name;
    };
}

class! {
    /// USM that migrates between the host and a device; both can access it in place.
    ///
    /// Parameters
    /// ----------
    /// other : int or object
    ///     The number of bytes to allocate, or an object with `__sycl_usm_array_interface__` whose memory is shared.
    /// alignment : int
    ///     In bytes; 0 for the runtime's choice, or a power of two of at most 2 MiB.
    /// queue : optional
    ///     A `dpctl.SyclQueue`, `SyclContext` or `SyclDevice`, a filter string or a capsule, which determines the context
    ///     and the device; by default that of `other`, or for a number of bytes dpctl's default Level Zero device and its
    ///     context, without dpctl a context of zeusm's own.
    /// copy : bool
    ///     Whether to copy the memory of `other` to a new allocation, which may be of another kind or context.
    /// pool : MemoryPool or bool, optional
    ///     The source of a new allocation: a pool of that kind, True for the default pool, or False for Level Zero.
    ///
    /// Raises
    /// ------
    /// USMAllocationError
    ///     When the allocation fails; the message has the size, the device and Level Zero's result.
    /// ValueError
    ///     For a negative size, an invalid alignment, memory of another kind without `copy`, or a malformed interface.
    /// TypeError
    ///     For arguments of the wrong type.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMShared(8)
    /// >>> memory.memset(65)
    /// >>> bytes(memoryview(memory))
    /// b'AAAAAAAA'
    MemoryUSMShared
}
class! {
    /// USM that resides on the host; every device of the context can access it.
    ///
    /// The parameters and errors are those of `MemoryUSMShared`.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMHost(4)
    /// >>> memory.copy_from_host(b"abcd")
    /// >>> memory.tobytes()
    /// b'abcd'
    MemoryUSMHost
}
class! {
    /// USM of one device, which the host cannot access: `memoryview` of it is a `TypeError`.
    ///
    /// The parameters and errors are those of `MemoryUSMShared`.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMDevice(4)
    /// >>> memory.copy_from_host(b"abcd")
    /// >>> memory.tobytes()
    /// b'abcd'
    MemoryUSMDevice
}

#[pymethods]
impl PyMemory {
    /// The bytes as a NumPy array, in place. NumPy uses the buffer instead if it can be had, and calls this method if it
    /// cannot, to raise the buffer's error: a `TypeError` for device memory, a `ValueError` for closed memory, or that of a
    /// failed operation. Without it, NumPy would make an array that has the memory object as its only element.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let view = PyMemoryView::from(slf.as_any())?;
        let numpy = imports::numpy(py)?;
        let Some(copy) = copy else {
            return numpy.call_method1("asarray", (view, dtype));
        };
        let keywords = PyDict::new(py);
        keywords.set_item("copy", copy)?;
        numpy.call_method("array", (view, dtype), Some(&keywords))
    }
}

/// A memory object of the kind's class.
#[inline(always)] // See `Request::allocate_then`.
pub(crate) fn object(py: Python<'_>, memory: PyMemory) -> PyResult<Bound<'_, PyMemory>> {
    let kind = memory.kind;
    let base = PyClassInitializer::from(memory);
    Ok(match kind {
        UsmKind::Host => Bound::new(py, base.add_subclass(MemoryUSMHost))?.into_super(),
        UsmKind::Device => Bound::new(py, base.add_subclass(MemoryUSMDevice))?.into_super(),
        UsmKind::Shared => Bound::new(py, base.add_subclass(MemoryUSMShared))?.into_super(),
    })
}

/// The kind of one of the three classes; `None` for any other, also for a subclass.
pub(crate) fn kind_of(class: &Bound<'_, PyType>) -> Option<UsmKind> {
    let (py, class) = (class.py(), class.as_type_ptr());
    if class == MemoryUSMShared::type_object_raw(py) {
        Some(UsmKind::Shared)
    } else if class == MemoryUSMDevice::type_object_raw(py) {
        Some(UsmKind::Device)
    } else {
        (class == MemoryUSMHost::type_object_raw(py)).then_some(UsmKind::Host)
    }
}

/// The object as a memory object, unless its class overrides the interface.
pub(crate) fn as_memory<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
) -> PyResult<Option<&'a Bound<'py, PyMemory>>> {
    match object.cast::<PyMemory>() {
        Ok(memory) if !overrides_interface(object)? => Ok(Some(memory)),
        _ => Ok(None),
    }
}

/// Whether a subclass in Python overrides the interface; its override takes precedence.
fn overrides_interface(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let class = object.get_type();
    if kind_of(&class).is_some() {
        return Ok(false);
    }
    let name = intern!(py, "__sycl_usm_array_interface__");
    let inherited = py.get_type::<PyMemory>().getattr(name)?;
    Ok(!class.getattr(name)?.is(&inherited))
}
