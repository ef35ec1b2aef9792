//! Allocation of new memory.

use pyo3::prelude::*;

use crate::memory::{Owner, PyMemory, Terms};
use crate::pool::AllocationSource;
use crate::resolve::BindingRef;
use crate::traced::Traced;
use zeusm::usm::{Allocation, UsmKind};

/// A request for new memory, in the context and on the device of `binding`.
pub(crate) struct Request<'a> {
    pub(crate) source: AllocationSource<'a>,
    pub(crate) kind: UsmKind,
    pub(crate) size: usize,
    pub(crate) alignment: usize,
    pub(crate) binding: BindingRef,
}

impl Request<'_> {
    /// Allocates the memory.
    ///
    /// # Errors
    /// As [`allocate_then`](Self::allocate_then).
    pub(crate) fn allocate(self, py: Python<'_>) -> PyResult<PyMemory> {
        self.allocate_then(py, Ok)
    }

    /// Allocates the memory, and passes it to `then`.
    ///
    /// A cached block takes a path of its own without a call that has the memory as its argument or result: the processor
    /// stalls at each copy of a structure that was just written field by field, and a copy takes as long as an atomic
    /// operation.
    ///
    /// # Errors
    /// `ValueError` for another context or device than the pool's; `USMAllocationError` when the allocation fails; the errors
    /// of `then`.
    #[inline(always)]
    pub(crate) fn allocate_then<T>(
        self,
        py: Python<'_>,
        then: impl FnOnce(PyMemory) -> PyResult<T>,
    ) -> PyResult<T> {
        let context_device = self.binding.context_device();
        let (kind, size, alignment) = (self.kind, self.size, self.alignment);
        let source = &self.source;
        if let Some(cached) = source.cached(py, context_device, kind, size, alignment)? {
            return then(self.memory(py, cached));
        }
        let new = source.allocate(py, context_device, kind, size, alignment)?;
        then(self.memory(py, new))
    }

    #[inline(always)]
    fn memory(self, py: Python<'_>, allocation: Allocation) -> PyMemory {
        let pointer = allocation.as_ptr().expose_provenance();
        let owner = Owner::Allocation(Traced::new(py, allocation));
        // The allocation has checked that the alignment is a power of two.
        let terms = Terms::new(false).aligned(self.alignment);
        PyMemory::new(self.binding, pointer, self.size, self.kind, terms, owner)
    }
}
