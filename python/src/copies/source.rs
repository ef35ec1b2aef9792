//! The memory of any object with USM, as the source of a copy.

use std::ops::Deref;

use pyo3::prelude::*;

use crate::array::adopt;
use crate::memory::{Pinned, PyMemory, as_memory};

/// The source of a copy.
pub(crate) enum Source {
    /// A pinned memory object, used as it is.
    Memory(Pinned),
    View(Box<PyMemory>),
}

impl Source {
    /// The memory of an object with USM.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::if_usm(object)?.map_or_else(|| adopt::refuse(object), Ok)
    }

    /// The memory of an object if that has USM.
    pub(crate) fn if_usm(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        match as_memory(object)? {
            Some(memory) => Pinned::new(memory).map(Self::Memory).map(Some),
            None => Ok(adopt::memory(object)?.map(Box::new).map(Self::View)),
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
