//! DLPack's table of functions, by which C code exchanges arrays and memory without calls of Python.
//!
//! The work stream of a device is dpctl's cached queue, which default arrays are on. By DLPack's rules, the export does not wait
//! for what was submitted to it: the consumer submits its work behind that.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::class::UsmArray;
use super::dlpack_export::{described, exported, own_device, share};
use super::dlpack_import::imported;
use super::make;
use super::plan::{Asked, Plan};
use crate::errors::OrRaise;
use crate::interpreter::attach;
use crate::memory::{PyMemory, as_memory};
use crate::resolve::{DlpackDevice, default_binding};
use crate::shown::{class_name, text};
use zeusm::dlpack::{Device, Form, Tensor, abi};
use zeusm::usm::UsmKind;

/// The capsule's name.
const CAPSULE: &CStr = c"dlpack_exchange_api";

static TABLE: abi::ExchangeApi = abi::ExchangeApi {
    version: abi::VERSION,
    previous: ptr::null(),
    allocate,
    from_object,
    to_object,
    describe,
    work_stream,
};

/// The capsule of the table, for the attribute of a class.
fn capsule(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    // SAFETY: the table is static.
    unsafe { PyCapsule::new_with_pointer(py, NonNull::from(&TABLE).cast(), CAPSULE) }
}

#[pymethods]
impl UsmArray {
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
        capsule(py)
    }
}

#[pymethods]
impl PyMemory {
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
        capsule(py)
    }
}

/// Writes the result of `function` to `out` and returns 0, or sets the exception and returns -1.
///
/// # Safety
/// The interpreter must be attached, and `out` be valid for a write.
#[inline]
unsafe fn call<T>(out: *mut T, function: impl FnOnce(Python<'_>) -> PyResult<T>) -> c_int {
    // SAFETY: the caller guarantees it.
    let py = unsafe { Python::assume_attached() };
    match function(py) {
        Ok(result) => {
            // SAFETY: the caller guarantees it.
            unsafe { out.write(result) };
            0
        }
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}

/// The device that the array is exported on. It waits for the array's queue, unless that is the work stream of the device.
#[inline]
fn device_of(py: Python<'_>, array: &UsmArray) -> PyResult<Device> {
    let memory = array.memory();
    let (device, is_on_work_stream) = *array.place.get_or_try_init(|| place(py, memory))?;
    if !is_on_work_stream {
        memory.for_queue(py)?;
    }
    memory.check_accessible()?;
    Ok(device)
}

#[cold]
fn place(py: Python<'_>, memory: &PyMemory) -> PyResult<Box<(Device, bool)>> {
    let device = own_device(py, memory)?;
    let Device::OneApi(number) = device else {
        return Ok(Box::new((device, true)));
    };
    share(py, memory)?;
    // Memory without a queue gets the work stream for its own later.
    let is_on_work_stream = memory.is_on(&DlpackDevice::get(py, number)?.binding);
    Ok(Box::new((device, is_on_work_stream)))
}

/// # Safety
/// `object` must be a valid object, the interpreter attached, and `out` valid for a write.
unsafe extern "C" fn from_object(object: *mut c_void, out: *mut *mut abi::Versioned) -> c_int {
    let exported = |py: Python<'_>| {
        // SAFETY: the caller guarantees the validity of the object.
        let object = unsafe { Bound::from_borrowed_ptr(py, object.cast()) };
        let array = match object.cast::<UsmArray>() {
            Ok(array) => array.clone(),
            Err(_) => Bound::new(py, UsmArray::bytes(memory_of(&object)?)?)?,
        };
        let device = device_of(py, array.get())?;
        exported(&array, Form::Versioned, device, false).map(<*mut c_void>::cast)
    };
    // SAFETY: the caller guarantees the interpreter, and the validity of the result's place.
    unsafe { call(out, exported) }
}

fn memory_of<'a, 'py>(object: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyMemory>> {
    as_memory(object)?.ok_or_else(|| {
        let class = class_name(object);
        PyBufferError::new_err(format!("{class} is no array or memory of zeusm"))
    })
}

/// # Safety
/// As for [`from_object`].
unsafe extern "C" fn describe(object: *mut c_void, out: *mut abi::Tensor) -> c_int {
    let tensor = |py: Python<'_>| {
        // SAFETY: the caller guarantees the validity of the object.
        let object = unsafe { Bound::from_borrowed_ptr(py, object.cast()) };
        let Ok(array) = object.cast::<UsmArray>() else {
            memory_of(&object)?;
            return Err(PyBufferError::new_err(
                "a memory object has no shape of its own: export it, or make an array by its view()",
            ));
        };
        let device = device_of(py, array.get())?;
        described(py, array.get(), device, Form::Unversioned)
    };
    // SAFETY: the caller guarantees the interpreter, and the validity of the result's place.
    unsafe { call(out, tensor) }
}

/// # Safety
/// `tensor` must be a valid structure, whose ownership the caller gives away, the interpreter attached, and `out` valid for a
/// write.
unsafe extern "C" fn to_object(tensor: *mut abi::Versioned, out: *mut *mut c_void) -> c_int {
    let object = |py: Python<'_>| {
        // SAFETY: the caller guarantees the validity of the structure, and gives its ownership.
        let array = unsafe { imported(py, tensor, None, None) }?;
        Ok(Bound::new(py, array)?.into_ptr().cast())
    };
    // SAFETY: the caller guarantees the interpreter, and the validity of the result's place.
    unsafe { call(out, object) }
}

/// # Safety
/// `out` must be valid for a write, and the interpreter attached.
unsafe extern "C" fn work_stream(kind: i32, id: i32, out: *mut *mut c_void) -> c_int {
    let stream = |py: Python<'_>| match Device::from(abi::Device { kind, id }) {
        Device::OneApi(number) => {
            let binding = &DlpackDevice::get(py, number)?.binding;
            Ok(binding.queue_or_cached(py)?.reference().as_raw())
        }
        // The host has none.
        _ => Ok(ptr::null_mut()),
    };
    // SAFETY: the caller guarantees the interpreter, and the validity of the result's place.
    unsafe { call(out, stream) }
}

/// # Safety
/// `prototype` must be valid but for its data, `out` valid for a write, and `set_error` be callable with `context`.
unsafe extern "C" fn allocate(
    prototype: *mut abi::Tensor,
    out: *mut *mut abi::Versioned,
    context: *mut c_void,
    set_error: abi::SetError,
) -> c_int {
    let allocated = |py: Python<'_>| {
        // SAFETY: the caller guarantees the validity of the prototype.
        let tensor = unsafe { Tensor::of_prototype(&*prototype) }.or_raise()?;
        allocated(py, tensor).map(<*mut c_void>::cast)
    };
    attach(|py| match allocated(py) {
        Ok(structure) => {
            // SAFETY: the caller guarantees the validity of the result's place.
            unsafe { out.write(structure) };
            0
        }
        Err(error) => {
            // An exception of the text, such as that of a signal's handler, takes the place of the error.
            let (error, message) = match text(error.value(py)) {
                Ok(message) => (error, message),
                Err(raised) => (raised, String::new()),
            };
            let texts = [class_name(error.value(py)), message];
            let [kind, message] = texts.map(|text| CString::new(text).unwrap_or_default());
            // SAFETY: the caller guarantees the function and its context; the texts end with a zero.
            unsafe { set_error(context, kind.as_ptr(), message.as_ptr()) };
            -1
        }
    })
}

/// A new array like the prototype, in device memory or, on the host, in host memory.
fn allocated(py: Python<'_>, prototype: Tensor) -> PyResult<*mut c_void> {
    let (kind, binding) = match prototype.device {
        Device::OneApi(number) => (UsmKind::Device, &DlpackDevice::get(py, number)?.binding),
        Device::Cpu => (UsmKind::Host, default_binding(py)?),
        Device::Other(_) => {
            return Err(PyBufferError::new_err(format!(
                "zeusm has no memory on {}, only on SYCL devices and on the host",
                prototype.device
            )));
        }
    };
    let asked = Asked {
        kind: Some(kind),
        binding: Some(Arc::clone(binding)),
        ..Asked::default()
    };
    let element = prototype.item.into();
    let plan = Plan::elsewhere(py, asked, "the tensor", element, prototype.layout)?;
    let array = Bound::new(py, make::empty(py, plan)?)?;
    exported(&array, Form::Versioned, prototype.device, false)
}
