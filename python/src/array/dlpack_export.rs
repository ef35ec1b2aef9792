//! DLPack export of arrays.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::class::UsmArray;
use super::make;
use super::plan::Plan;
use crate::dpctl::{self, Dpctl};
use crate::errors::OrRaise;
use crate::interpreter::{Attached, capsule_pointer, is_attached};
use crate::memory::PyMemory;
use crate::parse::{self, BoolOrInt};
use crate::resolve::{DlpackDevice, exchange_host_memory, root_device};
use crate::shown::naming;
use zeusm::dlpack::{self, Device, Form, abi};
use zeusm::usm::UsmKind;

#[pymethods]
impl UsmArray {
    /// A DLPack capsule of the array.
    ///
    /// Parameters
    /// ----------
    /// stream : dpctl.SyclQueue or int, optional
    ///     The consumer's queue, or the address of its `sycl::queue`, as JAX has it: work that is submitted to it later runs after
    ///     the work that was submitted to the array's queue. -1: the consumer waits itself for the work that was submitted to
    ///     queues.
    /// max_version : tuple of int, optional
    ///     The newest version that the consumer supports; without it, the capsule holds the unversioned structure.
    /// dl_device : tuple of int, optional
    ///     The array's own device, or (1, 0) for the host: in place for host and shared memory, a copy for device
    ///     memory.
    /// copy : bool, optional
    ///     True: always copy; False: never copy.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     When the array cannot be exported with these arguments; the message has the reason and the remedy.
    ///
    /// Examples
    /// --------
    /// >>> import numpy, zeusm
    /// >>> array = zeusm.asarray([1.5, 2.5], usm_type="shared")
    /// >>> zeusm.from_dlpack(array)._pointer == array._pointer
    /// True
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<&Bound<'py, PyAny>>,
        copy: Option<BoolOrInt>,
    ) -> PyResult<Bound<'py, PyAny>> {
        export(slf, stream, max_version, dl_device, copy.map(|copy| copy.0))
    }

    /// The DLPack device type, 14 for kDLOneAPI, and the position of the device among all root devices of SYCL.
    ///
    /// Without a SYCL context, the device of host and shared memory is (1, 0), the host.
    fn __dlpack_device__(&self, py: Python<'_>) -> PyResult<(i32, i32)> {
        device(py, self.memory())
    }
}

#[pymethods]
impl PyMemory {
    /// A DLPack capsule of the bytes; the arguments are those of `UsmArray.__dlpack__`.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<&Bound<'py, PyAny>>,
        copy: Option<BoolOrInt>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bytes = Bound::new(slf.py(), UsmArray::bytes(slf)?)?;
        UsmArray::__dlpack__(&bytes, stream, max_version, dl_device, copy)
    }

    /// The DLPack device type and number.
    fn __dlpack_device__(&self, py: Python<'_>) -> PyResult<(i32, i32)> {
        device(py, self)
    }
}

/// The DLPack device of memory, for `__dlpack_device__`.
fn device(py: Python<'_>, memory: &PyMemory) -> PyResult<(i32, i32)> {
    let device = abi::Device::from(own_device(py, memory)?);
    Ok((device.kind, device.id))
}

/// Exports the array as a capsule.
///
/// # Errors
/// `BufferError` when the array cannot be exported; `TypeError` and `ValueError` for invalid arguments.
fn export<'py>(
    array: &Bound<'py, UsmArray>,
    stream: Option<&Bound<'py, PyAny>>,
    max_version: Option<&Bound<'py, PyAny>>,
    dl_device: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, memory) = (array.py(), array.get().memory());
    let form = match max_version.map(parse::dlpack_version).transpose()? {
        Some(major) if major >= abi::VERSION.major.into() => Form::Versioned,
        _ => Form::Unversioned,
    };
    let device = match dl_device {
        Some(device) => {
            let (kind, id) = parse::dlpack_device(device, "dl_device")?;
            abi::Device { kind, id }.into()
        }
        None => own_device(py, memory)?,
    };
    if device == Device::Cpu {
        if stream.is_some() {
            return Err(PyValueError::new_err(
                "stream must be None for memory of the host: it is ready when this returns",
            ));
        }
        return match on_host(py, array.get(), copy)? {
            Some(copied) => capsule(&Bound::new(py, copied)?, form, Device::Cpu, true),
            None => capsule(array, form, Device::Cpu, false),
        };
    }
    let own = root_device(py, memory.context_device())?;
    if device != Device::OneApi(own.number) {
        return Err(PyBufferError::new_err(format!(
            "the array is on {} and cannot be exported to {device}; it can be exported to the host, (1, 0)",
            Device::OneApi(own.number),
        )));
    }
    if copy == Some(true) {
        // The copy is in the default context, as DLPack supports only that one.
        let binding = Arc::clone(&DlpackDevice::get(py, own.number)?.binding);
        let plan = Plan {
            binding,
            ..Plan::copy_of(array.get())
        };
        let copied = make::copy(py, &plan, array.get())?;
        share(py, copied.memory())?;
        return capsule(&Bound::new(py, copied)?, form, device, true);
    }
    share(py, memory)?;
    wait_for_queue(py, memory, stream)?;
    capsule(array, form, device, false)
}

/// The memory's own DLPack device: its SYCL device, or the host if it is in no SYCL context.
pub(super) fn own_device(py: Python<'_>, memory: &PyMemory) -> PyResult<Device> {
    match memory.context_device().sycl() {
        Ok(_) => Ok(Device::OneApi(
            root_device(py, memory.context_device())?.number,
        )),
        Err(_) if memory.kind.is_host_accessible() => Ok(Device::Cpu),
        Err(error) => Err(naming(error.value(py), |reason| {
            PyBufferError::new_err(reason.to_owned())
        })),
    }
}

/// A host-accessible copy, if one is requested or needed.
fn on_host(py: Python<'_>, array: &UsmArray, copy: Option<bool>) -> PyResult<Option<UsmArray>> {
    let memory = array.memory();
    let needed = !memory.kind.is_host_accessible();
    if needed && copy == Some(false) {
        return Err(PyBufferError::new_err(
            "USM-device memory cannot be exported to the host without a copy",
        ));
    }
    if needed || copy == Some(true) {
        let plan = Plan {
            kind: UsmKind::Host,
            ..Plan::copy_of(array)
        };
        return make::copy(py, &plan, array).map(Some);
    }
    memory.for_host(py, array.extent())?;
    Ok(None)
}

/// The `stream` of a consumer that synchronises itself, as MPI does.
const NO_SYNCHRONISATION: i64 = -1;

/// Orders the consumer's queue after the array's queue. It blocks until the array's queue is idle instead of submitting a
/// barrier, as SYCL leaks a few bytes for a barrier whose dependencies are complete.
fn wait_for_queue(
    py: Python<'_>,
    memory: &PyMemory,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let Some(stream) = stream else {
        return memory.for_queue(py).map(drop);
    };
    let is_number = stream.is_instance_of::<PyInt>();
    if is_number && stream.eq(NO_SYNCHRONISATION)? {
        return memory.check_accessible();
    }
    // The queue itself is not used, so that any address will do.
    let is_address = is_number && stream.gt(0)?;
    if !is_address && !dpctl::is_of(stream, &Dpctl::get(py)?.queue)? {
        return Err(naming(stream, |stream| {
            PyTypeError::new_err(format!(
                "stream must be a dpctl.SyclQueue, the address of a sycl::queue, or -1 for no synchronisation, not {stream}"
            ))
        }));
    }
    memory.for_queue(py).map(drop)
}

/// Prepares memory for consumers on its own device, which take its default context and a queue of that.
///
/// # Errors
/// `BufferError` for memory in another context.
pub(super) fn share(py: Python<'_>, memory: &PyMemory) -> PyResult<()> {
    let here = memory.context_device();
    if !root_device(py, here)?.is_default_context {
        return Err(PyBufferError::new_err(
            "the array's memory is in another context than its device's default one, and DLPack has no other: ask with \
             copy=True, or dl_device=(1, 0) for the host",
        ));
    }
    match memory.kind {
        UsmKind::Host => exchange_host_memory(py, here),
        _ => here.share_queue(py, memory.binding.queue()).map(drop),
    }
}

/// Describes the array for a consumer on `device`, its own or the host, which gets a structure of that form. The tensor is valid
/// as long as the array.
#[inline]
pub(super) fn described(
    py: Python<'_>,
    array: &UsmArray,
    device: Device,
    form: Form,
) -> PyResult<abi::Tensor> {
    let tensor = array.exportable()?.on(device, form).or_raise()?;
    array.memory().for_export(py)?;
    Ok(tensor)
}

/// The array of a structure, dropped by any thread.
pub(super) struct Exported(ManuallyDrop<Py<UsmArray>>);

impl Exported {
    pub(super) fn new(array: &Bound<'_, UsmArray>) -> Self {
        Self(ManuallyDrop::new(array.clone().unbind()))
    }
}

impl Drop for Exported {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is not used any more.
        let array = unsafe { ManuallyDrop::take(&mut self.0) };
        if is_attached() {
            // SAFETY: as was just asked. Most consumers call the deleter with the GIL, and it takes as long as the rest to
            // acquire that again.
            drop(array.into_bound(unsafe { Python::assume_attached() }));
        } else {
            drop(Attached::new(array));
        }
    }
}

/// The structure of that form for the array, which it keeps alive.
#[inline]
pub(super) fn exported(
    array: &Bound<'_, UsmArray>,
    form: Form,
    device: Device,
    copied: bool,
) -> PyResult<*mut c_void> {
    let inner = array.get();
    let tensor = described(array.py(), inner, device, form)?;
    let is_read_only = inner.memory().terms.is_read_only();
    let flags = inner.exportable()?.flags(is_read_only, copied);
    let owner = Exported::new(array);
    // SAFETY: the array has the memory, which is not closed before, and the numbers.
    Ok(unsafe { dlpack::export(form, tensor, flags, owner) })
}

fn capsule<'py>(
    array: &Bound<'py, UsmArray>,
    form: Form,
    device: Device,
    copied: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    if array.get().memory().terms.is_read_only() && form == Form::Unversioned {
        return Err(PyBufferError::new_err(
            "the array is read-only, which DLPack can say since version 1.0: ask with max_version=(1, 0)",
        ));
    }
    let structure = exported(array, form, device, copied)?;
    // SAFETY: the structure has just been made.
    unsafe { in_capsule(py, structure, form) }
}

/// A capsule that frees the structure, unless a consumer consumes it.
///
/// # Safety
/// `structure` must be a valid structure of that form without another owner.
pub(super) unsafe fn in_capsule(
    py: Python<'_>,
    structure: *mut c_void,
    form: Form,
) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the name is static, the destructor takes either form, and the interpreter is attached.
    unsafe {
        let capsule = ffi::PyCapsule_New(structure, form.name().as_ptr(), Some(delete));
        Bound::from_owned_ptr_or_err(py, capsule).inspect_err(|_| dlpack::release(form, structure))
    }
}

/// The destructor of a capsule: frees the structure unless a consumer has consumed the capsule, which renames it.
///
/// # Safety
/// For the interpreter's call at the end of a capsule of [`in_capsule`].
unsafe extern "C" fn delete(capsule: *mut ffi::PyObject) {
    for form in Form::ALL {
        if let Some(structure) = capsule_pointer(capsule, form.name()) {
            // SAFETY: a capsule of this name holds a structure of this form that no consumer releases.
            unsafe { dlpack::release(form, structure) };
        }
    }
}
