//! Arrays out through DLPack.

use std::ffi::c_void;
use std::sync::Arc;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::device::{Numbered, Root};
use super::{UsmArray, create};
use crate::dpctl::Dpctl;
use crate::errors::OrRaise;
use crate::memory::{Held, PyMemory};
use zeusm::dlpack::{self, Device, Form, Tensor, abi};
use zeusm::usm::UsmKind;

/// The device of some memory, as `__dlpack_device__` tells it.
pub(crate) fn device(py: Python<'_>, memory: &PyMemory) -> PyResult<(i32, i32)> {
    let device = abi::Device::from(own_device(py, memory)?);
    Ok((device.kind, device.id))
}

/// A capsule with the array.
///
/// # Errors
/// `BufferError` for what cannot be given; `TypeError` and `ValueError` for wrong arguments.
pub(crate) fn dlpack<'py>(
    py: Python<'py>,
    array: &UsmArray,
    stream: Option<&Bound<'py, PyAny>>,
    max_version: Option<(u32, u32)>,
    dl_device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let form = match max_version {
        Some((major, _)) if major >= abi::VERSION.major => Form::Versioned,
        _ => Form::Unversioned,
    };
    let device = match dl_device {
        Some((kind, id)) => abi::Device { kind, id }.into(),
        None => own_device(py, array.memory())?,
    };
    if device == Device::Cpu {
        if stream.is_some_and(|stream| !stream.is_none()) {
            return Err(PyValueError::new_err(
                "stream must be None for memory of the host: it is ready when this returns",
            ));
        }
        return match on_host(py, array, copy)? {
            Some(copied) => capsule(py, &copied, form, Device::Cpu, true),
            None => capsule(py, array, form, Device::Cpu, false),
        };
    }
    let own = Root::of(py, array.memory().place())?;
    if device != Device::OneApi(own.number) {
        return Err(PyBufferError::new_err(format!(
            "the array is on {} and cannot be given on {device}; it can be given to the host, (1, 0)",
            Device::OneApi(own.number),
        )));
    }
    if copy == Some(true) {
        // The copy goes where DLPack can have it, wherever the array is.
        let spot = Arc::clone(Numbered::get(py, own.number)?.spot());
        let copied = create::copied(py, array, array.memory().kind, spot, None)?;
        return capsule(py, &copied, form, device, true);
    }
    if !own.is_default_context {
        return Err(PyBufferError::new_err(
            "the array's memory is in another context than its device's default one, and DLPack has no other: ask with \
             copy=True, or dl_device=(1, 0) for the host",
        ));
    }
    follow(py, array, stream)?;
    capsule(py, array, form, device, false)
}

/// Where memory is without being asked: on its SYCL device, or on the host where it is in no SYCL context.
fn own_device(py: Python<'_>, memory: &PyMemory) -> PyResult<Device> {
    match memory.place().sycl() {
        Ok(_) => Ok(Device::OneApi(Root::of(py, memory.place())?.number)),
        Err(_) if memory.kind.is_host_accessible() => Ok(Device::Cpu),
        Err(error) => Err(PyBufferError::new_err(error.value(py).to_string())),
    }
}

/// A copy that the host may look at, if one is asked for or needed.
fn on_host(py: Python<'_>, array: &UsmArray, copy: Option<bool>) -> PyResult<Option<UsmArray>> {
    let memory = array.memory();
    let needed = !memory.kind.is_host_accessible();
    if needed && copy == Some(false) {
        return Err(PyBufferError::new_err(
            "USM-device memory cannot be given to the host without a copy",
        ));
    }
    if needed || copy == Some(true) {
        let spot = Arc::clone(&memory.spot);
        return create::copied(py, array, UsmKind::Host, spot, None).map(Some);
    }
    memory.for_host(py, array.extent())?;
    Ok(None)
}

/// Lets what was submitted to the array's queue come before what the consumer will submit to its own, by waiting for it: a
/// barrier, when it is done already, would leave some bytes behind in SYCL.
fn follow(py: Python<'_>, array: &UsmArray, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let memory = array.memory();
    memory.for_queue(py)?;
    let Some(stream) = stream.filter(|stream| !stream.is_none()) else {
        return Ok(());
    };
    if !stream.is_instance(Dpctl::get(py)?.queue.bind(py))? {
        return Err(PyTypeError::new_err(format!(
            "stream must be a dpctl.SyclQueue, not {}",
            stream.get_type().name()?
        )));
    }
    Ok(())
}

/// Keeps the memory object until some thread calls the deleter.
struct Owner(Option<Held>);

impl Drop for Owner {
    fn drop(&mut self) {
        let memory = self.0.take();
        // An interpreter that is going away frees nothing any more.
        if Python::try_attach(|_| ()).is_none() {
            std::mem::forget(memory);
        } else {
            Python::attach(|_| drop(memory));
        }
    }
}

fn capsule<'py>(
    py: Python<'py>,
    array: &UsmArray,
    form: Form,
    device: Device,
    copied: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let memory = array.memory();
    if memory.read_only && form == Form::Unversioned {
        return Err(PyBufferError::new_err(
            "the array is read-only, which DLPack can say since version 1.0: ask with max_version=(1, 0)",
        ));
    }
    let tensor = Tensor {
        pointer: memory.for_others(py)?,
        device,
        item: array.item,
        layout: array.layout.clone(),
        read_only: memory.read_only,
        copied,
    };
    let owner = Owner(Some(array.in_use().share(py)?));
    let structure = tensor.export(form, Box::new(owner)).or_raise()?;
    let destructor = match form {
        Form::Versioned => delete_versioned,
        Form::Unversioned => delete_unversioned,
    };
    // SAFETY: the name is static, the destructor fits the structure, and the interpreter is attached.
    unsafe {
        let capsule = ffi::PyCapsule_New(structure, form.name().as_ptr(), Some(destructor));
        Bound::from_owned_ptr_or_err(py, capsule).inspect_err(|_| dlpack::release(form, structure))
    }
}

unsafe extern "C" fn delete_versioned(capsule: *mut ffi::PyObject) {
    delete(capsule, Form::Versioned);
}

unsafe extern "C" fn delete_unversioned(capsule: *mut ffi::PyObject) {
    delete(capsule, Form::Unversioned);
}

/// Frees the structure if nobody has taken it: whoever takes it renames the capsule.
fn delete(capsule: *mut ffi::PyObject, form: Form) {
    if let Some(structure) = held(capsule, form) {
        // SAFETY: a capsule of this name holds a structure of this form that nobody else releases.
        unsafe { dlpack::release(form, structure) };
    }
}

/// The structure in a capsule of that form which nobody has taken.
pub(super) fn held(capsule: *mut ffi::PyObject, form: Form) -> Option<*mut c_void> {
    let name = form.name().as_ptr();
    // SAFETY: the interpreter is attached; the name is checked before it is asked for.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, name) == 0 {
            return None;
        }
        let structure = ffi::PyCapsule_GetPointer(capsule, name);
        (!structure.is_null()).then_some(structure)
    }
}
