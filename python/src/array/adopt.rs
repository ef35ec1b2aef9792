//! Import without a copy: the memory, or the array, of any object that has USM, after Level Zero has confirmed its kind and extent.
//!
//! The interface of zeusm's own objects is not read: reading it marks the memory as exported, and needs SYCL. That of others is
//! read once: its capsule has one consumer, and the next dictionary may describe other memory.

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;

use super::class::UsmArray;
use crate::errors::OrRaise;
use crate::interpreter::intern;
use crate::memory::{
    Owner, Pinned, PyMemory, Terms, as_memory, note_import_by_address, object as new_object,
};
use crate::parse::{self, dtype, interface};
use crate::resolve::{ContextDevice, ResolvedSyclObject, invalid_argument};
use crate::shown::class_name;
use zeusm::suai::{self, Interface};
use zeusm::usm::UsmKind;

/// The field of the interface that names the context.
const SYCLOBJ: &str = "__sycl_usm_array_interface__ is malformed: 'syclobj'";

/// The array of an object of zeusm itself. A memory object is a one-dimensional array of its bytes.
pub(super) fn own(obj: &Bound<'_, PyAny>) -> PyResult<Option<UsmArray>> {
    if let Ok(array) = obj.cast::<UsmArray>() {
        return array.get().share(obj.py()).map(Some);
    }
    as_memory(obj)?.map(UsmArray::bytes).transpose()
}

/// The array of an object, if that has USM.
pub(super) fn array(obj: &Bound<'_, PyAny>) -> PyResult<Option<UsmArray>> {
    if let Some(array) = own(obj)? {
        return Ok(Some(array));
    }
    let dictionary = interface::dictionary(obj)?;
    dictionary
        .map(|dictionary| described(obj, &dictionary))
        .transpose()
}

/// The array that a dictionary describes.
pub(super) fn described(
    owner: &Bound<'_, PyAny>,
    dictionary: &Bound<'_, PyDict>,
) -> PyResult<UsmArray> {
    let (memory, found) = from_interface(owner, dictionary)?;
    if !dtype::is_supported(&found.element) {
        return Err(interface::malformed(dtype::unsupported(&found.element)));
    }
    // The memory begins at the lowest byte of an element.
    let layout = found.layout.from_lowest().or_raise()?;
    UsmArray::new(&new_object(owner.py(), memory)?, found.element, layout)
}

/// The memory of an object with USM.
pub(crate) fn view_of(object: &Bound<'_, PyAny>) -> PyResult<PyMemory> {
    memory(object)?.map_or_else(|| refuse(object), Ok)
}

/// The memory of an object, if that has USM, from the lowest byte of an element to the highest.
pub(crate) fn memory(object: &Bound<'_, PyAny>) -> PyResult<Option<PyMemory>> {
    if let Some(memory) = as_memory(object)? {
        return memory.get().share(object.py()).map(Some);
    }
    if let Ok(array) = object.cast::<UsmArray>() {
        return array.get().extent_memory(object.py()).map(Some);
    }
    match interface::dictionary(object)? {
        Some(dictionary) => Ok(Some(from_interface(object, &dictionary)?.0)),
        None => Ok(None),
    }
}

/// The memory of an object, if that has USM, for an operation. A memory object is used as it is.
pub(crate) fn pinned(object: &Bound<'_, PyAny>) -> PyResult<Option<Pinned>> {
    if let Some(memory) = as_memory(object)? {
        return Pinned::new(memory).map(Some);
    }
    let view = memory(object)?.map(|view| new_object(object.py(), view));
    view.transpose()?.as_ref().map(Pinned::new).transpose()
}

/// As [`pinned`], of an object that has to have USM.
pub(crate) fn pinned_of(object: &Bound<'_, PyAny>) -> PyResult<Pinned> {
    pinned(object)?.map_or_else(|| refuse(object), Ok)
}

/// Raises the error for an object without USM.
pub(crate) fn refuse<T>(object: &Bound<'_, PyAny>) -> PyResult<T> {
    let name = class_name(object);
    let cuda = intern!(object.py(), "__cuda_array_interface__");
    if object.getattr_opt(cuda)?.is_some() {
        return Err(PyValueError::new_err(format!(
            "{name} is in memory of CUDA, which is no USM and has no pointer that SYCL can use: zeusm.asarray, \
             copy_from_device and copy_to_device copy it"
        )));
    }
    // SAFETY: the object is alive, and the function looks at its class only.
    let is_buffer = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0;
    let advice = if parse::is_number(object)? && !parse::is_integral(object)? {
        ": a number of bytes must be an int"
    } else if is_buffer {
        ": copy_from_host and zeusm.asarray copy memory of the host"
    } else {
        ""
    };
    Err(PyValueError::new_err(format!(
        "{name} has no __sycl_usm_array_interface__{advice}"
    )))
}

/// Imports the memory that a `__sycl_usm_array_interface__` dictionary describes, from the lowest byte of an element to the
/// highest, and the array in it. `owner` is the object that exports the dictionary; it keeps the memory alive.
fn from_interface(
    owner: &Bound<'_, PyAny>,
    dictionary: &Bound<'_, PyDict>,
) -> PyResult<(PyMemory, Interface)> {
    let py = owner.py();
    let exported = interface::read(owner, dictionary)?;
    let resolved = ResolvedSyclObject::read(&exported.syclobj, SYCLOBJ)?;
    let (pointer, nbytes) = (
        exported.interface.start(),
        exported.interface.layout.extent().len(),
    );
    let found = ContextDevice::of_pointer(&resolved.context, exported.interface.pointer);
    let (context_device, kind) = if nbytes == 0 {
        // Without elements any pointer is valid.
        let (context_device, kind) = match found {
            Ok((context_device, attributes)) => (context_device, attributes.kind),
            Err(_) => {
                let found = resolved.context_device();
                let found = found.map_err(|error| invalid_argument(SYCLOBJ, py, error))?;
                (found, UsmKind::Device)
            }
        };
        (context_device, declared_kind(owner)?.unwrap_or(kind))
    } else {
        let (context_device, attributes) =
            found.map_err(|error| invalid_argument("'data' and 'syclobj'", py, error))?;
        let interface = &exported.interface;
        let checked = interface
            .layout
            .check_within(interface.pointer, attributes.addresses());
        checked.map_err(|error| outside(interface, &error))?;
        (context_device, attributes.kind)
    };
    // Host memory belongs to no device, so it is used on the exporter's queue.
    let context_device = match kind {
        UsmKind::Host => resolved
            .context_device()
            .map_err(|error| invalid_argument(SYCLOBJ, py, error))?,
        UsmKind::Device | UsmKind::Shared => context_device,
    };
    let binding = resolved.bind_at(py, &context_device)?;
    note_import(owner)?;
    let owner = Owner::Object(owner.clone().unbind());
    let memory = PyMemory::new(
        binding.into(),
        pointer,
        nbytes,
        kind,
        Terms::new(exported.read_only),
        owner,
    );
    Ok((memory, exported.interface))
}

/// Imports the memory at a pointer in the context of a SYCL object; `owner` keeps it alive.
///
/// # Errors
/// `ValueError` when the bytes are not within an allocation of the context.
pub(crate) fn from_pointer(
    resolved: ResolvedSyclObject,
    pointer: usize,
    nbytes: usize,
    owner: &Bound<'_, PyAny>,
) -> PyResult<PyMemory> {
    let (context_device, attributes) = ContextDevice::of_pointer(&resolved.context, pointer)?;
    let room = attributes.size - (pointer - attributes.base);
    if nbytes > room {
        return Err(PyValueError::new_err(format!(
            "{nbytes} bytes at {pointer:#x} reach beyond their allocation, which has {room} bytes from there"
        )));
    }
    let binding = resolved.bind_at(owner.py(), &context_device)?;
    note_import(owner)?;
    note_import_by_address(attributes.kind);
    let owner = Owner::Object(owner.clone().unbind());
    Ok(PyMemory::new(
        binding.into(),
        pointer,
        nbytes,
        attributes.kind,
        Terms::new(false),
        owner,
    ))
}

/// Memory of zeusm that owns an import cannot be closed any more. Its address need not be the imported one.
///
/// # Errors
/// `ValueError` when it is closed.
fn note_import(owner: &Bound<'_, PyAny>) -> PyResult<()> {
    match owner.cast::<PyMemory>() {
        Ok(memory) => Ok(memory.get().note_import()?),
        Err(_) => Ok(()),
    }
}

/// The kind of memory that an exporter declares, if any. Without elements, it may be the only source: the pointer may be null,
/// or behind the allocation.
pub(super) fn declared_kind(x: &Bound<'_, PyAny>) -> PyResult<Option<UsmKind>> {
    if let Ok(memory) = x.cast::<PyMemory>() {
        return Ok(Some(memory.get().kind));
    }
    let Some(usm_type) = x.getattr_opt(intern!(x.py(), "usm_type"))? else {
        return Ok(None);
    };
    let name = usm_type.extract::<PyBackedStr>().ok();
    Ok(name.and_then(|name| parse::usm_kind(&name).ok()))
}

/// The error for an extent outside the allocation, with all the fields that determine the extent.
fn outside(interface: &Interface, error: &suai::Error) -> PyErr {
    let layout = &interface.layout;
    interface::malformed(format_args!(
        "'shape' {:?} with 'strides' {:?}, 'offset' {} and 'typestr' of {} bytes an item: {error}",
        layout.shape(),
        layout.element_strides().unwrap_or_default(),
        layout.element_offset().unwrap_or_default(),
        layout.itemsize(),
    ))
}
