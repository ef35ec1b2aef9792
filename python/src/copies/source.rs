//! The memory of any object with USM, as the source of an import or a copy.

use std::ops::Deref;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::adopt;
use crate::array::UsmArray;
use crate::memory::{Pinned, PyMemory, as_memory};
use crate::parse::{cuda, interface};
use zeusm::cuda::Interface;

/// The source of a copy.
pub(crate) enum Source {
    /// A pinned memory object, used as it is.
    Memory(Pinned),
    View(Box<PyMemory>),
}

impl Source {
    /// The array in CUDA memory, of an object that has no USM.
    pub(crate) fn of_cuda(object: &Bound<'_, PyAny>) -> PyResult<Option<Interface>> {
        // An object that has both interfaces is USM. Reading the interface of USM marks it as exported.
        if object.is_instance_of::<PyMemory>()
            || object.is_instance_of::<UsmArray>()
            || !cuda::is_cuda(object)?
            || interface::dictionary(object)?.is_some()
        {
            return Ok(None);
        }
        cuda::read(object)
    }

    /// The memory of any other object with USM.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::if_usm(object)?.map_or_else(|| refuse(object), Ok)
    }

    /// The memory of an object if that has USM. The interface of zeusm's own objects is not read: reading it marks their memory
    /// as exported, and needs SYCL. That of others is read once: its capsule has one consumer, and the next dictionary may
    /// describe other memory.
    pub(crate) fn if_usm(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        match as_memory(object)? {
            Some(memory) => Pinned::new(memory).map(Self::Memory).map(Some),
            None => Ok(imported(object)?.map(Box::new).map(Self::View)),
        }
    }
}

impl Deref for Source {
    type Target = PyMemory;

    fn deref(&self) -> &PyMemory {
        match self {
            Self::Memory(pinned) => pinned.memory(),
            Self::View(memory) => memory,
        }
    }
}

/// Imports the memory of any object with USM, without a copy.
pub(crate) fn view_of(object: &Bound<'_, PyAny>) -> PyResult<PyMemory> {
    if let Some(memory) = as_memory(object)? {
        return memory.get().share(object.py());
    }
    imported(object)?.map_or_else(|| refuse(object), Ok)
}

/// The memory of an object that is no memory object, if that has USM.
fn imported(object: &Bound<'_, PyAny>) -> PyResult<Option<PyMemory>> {
    if let Ok(array) = object.cast::<UsmArray>() {
        return array.get().extent_memory(object.py()).map(Some);
    }
    match interface::dictionary(object)? {
        Some(dictionary) => Ok(Some(adopt::from_interface(object, &dictionary)?.0)),
        None => Ok(None),
    }
}

/// Raises the error for an object without USM.
fn refuse<T>(object: &Bound<'_, PyAny>) -> PyResult<T> {
    let name = object.get_type().name()?;
    if cuda::is_cuda(object)? {
        return Err(PyValueError::new_err(format!(
            "{name} is in memory of CUDA, which is no USM and has no pointer that SYCL can use: zeusm.asarray, \
             copy_from_device and copy_to_device copy it"
        )));
    }
    // SAFETY: the object is alive, and the function looks at its class only.
    let is_buffer = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0;
    let advice = match is_buffer {
        true => ": copy_from_host and zeusm.asarray copy memory of the host",
        false => "",
    };
    Err(PyValueError::new_err(format!(
        "{name} has no __sycl_usm_array_interface__{advice}"
    )))
}
