//! The three classes, one for each kind of USM, and their buffers. Their constructors are in
//! [`construct`](crate::construct).

// PyO3's trampoline for `__getbuffer__` calls it without an unsafe block.
#![allow(unsafe_op_in_unsafe_fn)]

use std::ffi::c_int;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::PyMemory;
use zeusm::usm::UsmKind;

/// Makes a class. `$getbuffer` serves requests for a buffer.
macro_rules! class {
    ($(#[$documentation:meta])* $name:ident, $getbuffer:path) => {
        $(#[$documentation])*
        #[pyclass(extends = PyMemory, module = "zeusm.memory", subclass, frozen)]
        pub(crate) struct $name;

        #[pymethods]
        impl $name {
            unsafe fn __getbuffer__(
                slf: Bound<'_, Self>,
                view: *mut ffi::Py_buffer,
                flags: c_int,
            ) -> PyResult<()> {
                // SAFETY: the interpreter passes a buffer structure to fill in.
                unsafe { $getbuffer(slf.as_super(), view, flags) }
            }

            unsafe fn __releasebuffer__(slf: Bound<'_, Self>, _view: *mut ffi::Py_buffer) {
                slf.as_super().get().pins.release();
            }
        }
    };
}

class! {
    /// MemoryUSMShared(other, *, alignment=0, queue=None, copy=False, pool=None)
    /// --
    ///
    /// USM that moves between the host and a device; both may use it in place.
    ///
    /// Parameters
    /// ----------
    /// other : int or object
    ///     A number of bytes to allocate, or an object with `__sycl_usm_array_interface__` to share memory with.
    /// alignment : int
    ///     In bytes; 0 for the runtime's choice, or a power of two of at most 2 MiB.
    /// queue : optional
    ///     A `dpctl.SyclQueue`, `SyclContext` or `SyclDevice`, a filter string or a capsule that names where to
    ///     allocate; by default the context of dpctl's default Level Zero device, or without dpctl one of zeusm's own.
    /// copy : bool
    ///     Copy the memory of `other` to a new allocation, which may be of another kind or context.
    /// pool : MemoryPool or bool, optional
    ///     Where a new allocation comes from: a pool of that kind, or with False straight from Level Zero.
    ///
    /// Raises
    /// ------
    /// USMAllocationError
    ///     When there is no such memory; the message has the size, the device and Level Zero's answer.
    /// ValueError
    ///     For a negative size, an impossible alignment, memory of another kind without `copy`, or a malformed
    ///     interface.
    /// TypeError
    ///     For arguments of a wrong type.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMShared(8)
    /// >>> memory.memset(65)
    /// >>> bytes(memoryview(memory))
    /// b'AAAAAAAA'
    MemoryUSMShared, host_buffer
}
class! {
    /// MemoryUSMHost(other, *, alignment=0, queue=None, copy=False, pool=None)
    /// --
    ///
    /// USM that the host owns and every device of the context may use.
    ///
    /// Parameters and errors as of `MemoryUSMShared`.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMHost(4)
    /// >>> memory.copy_from_host(b"abcd")
    /// >>> memory.tobytes()
    /// b'abcd'
    MemoryUSMHost, host_buffer
}
class! {
    /// MemoryUSMDevice(other, *, alignment=0, queue=None, copy=False, pool=None)
    /// --
    ///
    /// USM of one device, which the host cannot access: `memoryview` of it is a `TypeError`.
    ///
    /// Parameters and errors as of `MemoryUSMShared`.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMDevice(4)
    /// >>> memory.copy_from_host(b"abcd")
    /// >>> memory.tobytes()
    /// b'abcd'
    MemoryUSMDevice, no_buffer
}

/// Fills in a buffer of bytes, with as much of shape, strides and format as `flags` ask for.
///
/// # Safety
/// `view` must be a buffer structure to fill in.
unsafe fn host_buffer(
    memory: &Bound<'_, PyMemory>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    let py = memory.py();
    let inner = memory.get();
    inner.pins.acquire()?;
    let address = inner
        .for_buffer(py, inner.extent(), flags)
        .inspect_err(|_| inner.pins.release())?;
    // SAFETY: `view` is to be filled in. The exporter is `memory` itself, which the view keeps alive, and with it the
    // bytes; nothing moves or shrinks them.
    let result = unsafe {
        ffi::PyBuffer_FillInfo(
            view,
            memory.as_ptr(),
            std::ptr::with_exposed_provenance_mut(address),
            inner.nbytes.cast_signed(),
            c_int::from(inner.read_only),
            flags,
        )
    };
    if result == -1 {
        inner.pins.release();
        return Err(PyErr::fetch(py));
    }
    Ok(())
}

/// Refuses, as the host cannot access device memory.
///
/// # Safety
/// None needed; unsafe to have the type of [`host_buffer`].
unsafe fn no_buffer(
    memory: &Bound<'_, PyMemory>,
    view: *mut ffi::Py_buffer,
    _flags: c_int,
) -> PyResult<()> {
    // SAFETY: the buffer protocol wants `obj` null in a refused request.
    unsafe { (*view).obj = std::ptr::null_mut() };
    let inner = memory.get();
    Err(PyTypeError::new_err(format!(
        "USM-device memory on {} cannot be accessed by the host: use copy_to_host(), or MemoryUSMShared or \
         MemoryUSMHost{}",
        inner.context_device().device().name(),
        inner.host_access_hint(),
    )))
}

/// The object of the kind's class.
pub(crate) fn object(py: Python<'_>, memory: PyMemory) -> PyResult<Bound<'_, PyMemory>> {
    let kind = memory.kind;
    let base = PyClassInitializer::from(memory);
    Ok(match kind {
        UsmKind::Host => Bound::new(py, base.add_subclass(MemoryUSMHost))?.into_super(),
        UsmKind::Device => Bound::new(py, base.add_subclass(MemoryUSMDevice))?.into_super(),
        UsmKind::Shared => Bound::new(py, base.add_subclass(MemoryUSMShared))?.into_super(),
    })
}

/// The class of a kind.
pub(crate) fn class(py: Python<'_>, kind: UsmKind) -> Bound<'_, PyType> {
    match kind {
        UsmKind::Host => py.get_type::<MemoryUSMHost>(),
        UsmKind::Device => py.get_type::<MemoryUSMDevice>(),
        UsmKind::Shared => py.get_type::<MemoryUSMShared>(),
    }
}

/// Whether `class` is one of the three and not a subclass.
pub(crate) fn is_exact_class(class: &Bound<'_, PyType>) -> bool {
    [UsmKind::Shared, UsmKind::Device, UsmKind::Host]
        .into_iter()
        .any(|kind| class.is(self::class(class.py(), kind)))
}
