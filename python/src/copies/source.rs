//! The memory of any object with USM, as the source of an import or a copy.

use std::ops::Deref;

use pyo3::prelude::*;

use crate::array::UsmArray;
use crate::array::adopt::{imported, refuse};
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
