//! Allocation of new memory.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::memory::{Owner, PyMemory};
use crate::pool::AllocationSource;
use crate::resolve::QueueBinding;
use crate::traced::Traced;
use zeusm::usm::UsmKind;

/// Allocates memory in the context and on the device of `binding`.
///
/// # Errors
/// As [`AllocationSource::allocate`].
pub(crate) fn allocate(
    py: Python<'_>,
    source: &AllocationSource,
    kind: UsmKind,
    size: usize,
    alignment: usize,
    binding: Arc<QueueBinding>,
) -> PyResult<PyMemory> {
    let allocation = source.allocate(py, binding.context_device(), kind, size, alignment)?;
    let pointer = allocation.as_ptr().expose_provenance();
    let owner = Owner::Allocation(Traced::new(py, allocation));
    Ok(PyMemory {
        // The allocation has checked that the alignment is a power of two.
        alignment_bits: alignment.checked_ilog2().map_or(0, |bits| bits as u8),
        ..PyMemory::new(binding, pointer, size, kind, false, owner)
    })
}
