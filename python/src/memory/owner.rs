//! Who keeps memory alive.

use std::sync::Arc;

use pyo3::prelude::*;

use zeusm::ipc::Mapping;
use zeusm::usm::Allocation;

/// Who keeps the memory alive.
pub(crate) enum Owner {
    /// The one object that has it: most memory is never shared.
    Allocation(Allocation),
    /// All objects that share it.
    Shared(Arc<Allocation>),
    /// The object whose interface was read.
    Object(Py<PyAny>),
    /// Another process.
    Mapping(Arc<Mapping>),
}

impl Owner {
    /// Another owner of the same memory.
    pub(super) fn share(self, py: Python<'_>) -> (Self, Self) {
        match self {
            Self::Allocation(allocation) => Self::Shared(Arc::new(allocation)).share(py),
            Self::Shared(allocation) => (
                Self::Shared(Arc::clone(&allocation)),
                Self::Shared(allocation),
            ),
            Self::Object(object) => (Self::Object(object.clone_ref(py)), Self::Object(object)),
            Self::Mapping(mapping) => (Self::Mapping(Arc::clone(&mapping)), Self::Mapping(mapping)),
        }
    }
}
