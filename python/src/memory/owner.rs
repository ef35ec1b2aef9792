//! The owners of memory.

use std::sync::Arc;

use pyo3::prelude::*;

use zeusm::ipc::Mapping;
use zeusm::usm::Allocation;

/// The owner that keeps the memory alive.
pub(crate) enum Owner {
    /// An allocation with a single owner, as most memory is never shared.
    Allocation(Allocation),
    /// An allocation with several owners.
    Shared(Arc<Allocation>),
    /// The object that exported the interface.
    Object(Py<PyAny>),
    /// A mapping of another process's memory.
    Mapping(Arc<Mapping>),
}

impl Owner {
    /// Converts the owner to two owners of the same memory.
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
