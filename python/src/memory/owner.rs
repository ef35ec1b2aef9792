//! The owners of memory.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::interpreter::try_attach;
use crate::stacks;
use crate::traced::Traced;
use zeusm::history;
use zeusm::ipc::Mapping;
use zeusm_process::{Mutex, MutexGuard};

/// The owner that keeps the memory alive.
pub(crate) enum Owner {
    /// An allocation with a single owner, as most memory is never shared.
    Allocation(Traced),
    /// An allocation with several owners.
    Shared(Arc<Traced>),
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

/// The owner of an object's memory; `None` when the object is closed.
pub(crate) struct OwnerSlot(Mutex<Option<Owner>>);

impl OwnerSlot {
    pub(super) fn new(owner: Option<Owner>) -> Self {
        Self(Mutex::new(owner))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Owner>> {
        self.0.lock()
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Option<Owner>>> {
        self.0.try_lock()
    }
}

impl Drop for OwnerSlot {
    /// While a history is recorded, the free has the stack of the object's deallocation.
    fn drop(&mut self) {
        let owner = self.0.get_mut();
        if history::is_recording() && matches!(owner, Some(Owner::Allocation(_) | Owner::Shared(_)))
        {
            let _scope = try_attach(stacks::scope);
            drop(owner.take());
        }
    }
}
