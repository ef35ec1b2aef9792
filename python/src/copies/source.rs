//! The memory of any object with USM, as the source of an import or a copy.

use std::ops::Deref;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::adopt;
use crate::array::UsmArray;
use crate::interpreter::intern;
use crate::memory::{Pinned, PyMemory, is_exact_class};
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
        match memory_object(object)? {
            Some(memory) => Pinned::new(memory).map(Self::Memory),
            None => view_of(object).map(Box::new).map(Self::View),
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
    let py = object.py();
    if let Some(memory) = memory_object(object)? {
        return memory.get().share(py);
    }
    if let Ok(array) = object.cast::<UsmArray>() {
        return array.get().extent_memory(py);
    }
    let Some(dictionary) = interface::dictionary(object)? else {
        if cuda::is_cuda(object)? {
            return Err(PyValueError::new_err(format!(
                "{} is in memory of CUDA, which is no USM and has no pointer that SYCL can use: zeusm.asarray, \
                 copy_from_device and copy_to_device copy it",
                object.get_type().name()?
            )));
        }
        return Err(PyValueError::new_err(format!(
            "{} has no __sycl_usm_array_interface__, and is no number of bytes",
            object.get_type().name()?
        )));
    };
    Ok(adopt::from_interface(object, &dictionary)?.0)
}

/// The object as a memory object, unless its class overrides the interface.
fn memory_object<'a, 'py>(
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
    if is_exact_class(&class) {
        return Ok(false);
    }
    let name = intern!(py, "__sycl_usm_array_interface__");
    let inherited = py.get_type::<PyMemory>().getattr(name)?;
    Ok(!class.getattr(name)?.is(&inherited))
}
