//! The makers: each executes a [`Plan`] for one kind of source. A plan without a copy is a view, which only USM can be.

use std::sync::Arc;

use pyo3::prelude::*;

use super::class::UsmArray;
use super::host;
use super::plan::Plan;
use crate::allocate::Request;
use crate::cuda::{self, Direction};
use crate::memory::{PyMemory, object};
use crate::pool::AllocationSource;
use crate::resolve::QueueBinding;
use crate::transfer::{self, Side, StridedCopy};
use zeusm::cuda::Interface;
use zeusm::suai::Layout;
use zeusm::usm::UsmKind;

/// A new array of the plan's own layout, whose elements are not written.
pub(super) fn empty(py: Python<'_>, plan: Plan) -> PyResult<UsmArray> {
    let memory = memory_for(py, &plan, plan.layout.nbytes())?;
    UsmArray::new(&memory, plan.element, plan.layout)
}

/// An array of elements in USM: the source itself, on the plan's queue, or a copy.
pub(super) fn of_usm(py: Python<'_>, plan: &Plan, source: UsmArray) -> PyResult<UsmArray> {
    if plan.copy {
        return copy(py, plan, &source);
    }
    let memory = source.memory();
    if memory.is_on(&plan.binding) {
        return Ok(source);
    }
    let memory = memory.share(py)?.on_queue(py, Arc::clone(&plan.binding))?;
    UsmArray::new(&object(py, memory)?, source.element, source.layout)
}

/// A copy of elements in USM.
pub(super) fn copy(py: Python<'_>, plan: &Plan, source: &UsmArray) -> PyResult<UsmArray> {
    let (elements, packed) = plan.packed()?;
    let mut copy = allocate(py, plan, packed)?;
    if host::is_faster(py, &elements, false)? {
        let target = Bound::new(py, copy)?;
        let is_copied = host::copy_through(source, &target)?;
        copy = target.get().share(py)?;
        if is_copied {
            return Ok(copy);
        }
    }
    let memory = source.memory();
    let (here, there) = (copy.memory().context_device(), memory.context_device());
    let (to, target) = (copy.memory().for_queue(py)?, copy.pinned().share(py)?);
    if here.can_access(there, memory.kind) {
        // SAFETY: the target has room for the elements, and its device can access the source.
        unsafe { source.copy_packed(py, here, &elements, to, false, target) }?;
        return Ok(copy);
    }
    let size = elements.nbytes();
    let operands = (source.pinned().share(py)?, target);
    // The elements are packed by the source's own device first, as peer copies support contiguous bytes only.
    let (from, operands) = if elements.is_c_contiguous() {
        let first = memory
            .for_queue(py)?
            .wrapping_add_signed(elements.byte_offset());
        (first, (operands, None))
    } else {
        let request = request(UsmKind::Device, size, &memory.binding);
        let middle = request.allocate(py)?;
        let from = middle.for_queue(py)?;
        // SAFETY: the memory in the middle has that size, and is the source's device's.
        let middle = unsafe { source.copy_packed(py, there, &elements, from, false, middle) }?;
        (from, (operands, Some(middle)))
    };
    let sides = [(here, to), (there, from)].map(|(owner, address)| Side {
        owner,
        address,
        by_host: false,
    });
    // SAFETY: the operands own both sides of this size, each with its context and device.
    unsafe { transfer::copy(py, sides[0], sides[1], size, operands) }?;
    Ok(copy)
}

/// A copy of a NumPy array.
pub(super) fn of_numpy(
    py: Python<'_>,
    plan: &Plan,
    source: &Bound<'_, PyAny>,
) -> PyResult<UsmArray> {
    let array = Bound::new(py, allocate(py, plan, plan.packed()?.1)?)?;
    host::write(&array, source)?;
    array.get().share(py)
}

/// A copy of host memory at `from`, whose owner `own` takes once the copy has memory.
///
/// # Safety
/// What `own` returns must keep the extent of the plan's layout at `from` valid.
pub(super) unsafe fn of_host<T: Send + 'static>(
    py: Python<'_>,
    plan: &Plan,
    from: usize,
    own: impl FnOnce() -> PyResult<T>,
) -> PyResult<UsmArray> {
    let (elements, packed) = plan.packed()?;
    let copy = allocate(py, plan, packed)?;
    let sides = StridedCopy {
        strided: from,
        packed: copy.memory().for_queue(py)?,
        is_scatter: false,
    };
    let operands = (own()?, copy.pinned().share(py)?);
    let here = copy.memory().context_device();
    // SAFETY: the caller guarantees that the source is valid; the copy is as large as the elements.
    unsafe { transfer::copy_strided(py, here, &elements, sides, operands) }?;
    Ok(copy)
}

/// A copy of an array in CUDA memory, which `owner` keeps alive.
pub(super) fn of_cuda(
    owner: &Bound<'_, PyAny>,
    plan: &Plan,
    source: &Interface,
) -> PyResult<UsmArray> {
    let py = owner.py();
    let (elements, packed) = plan.packed()?;
    let copy = allocate(py, plan, packed)?;
    let (here, to) = (copy.memory().context_device(), copy.memory().for_queue(py)?);
    let operands = (owner.clone().unbind(), copy.pinned().share(py)?);
    // SAFETY: the operands own both sides, which have the same size.
    unsafe { cuda::copy(py, Direction::ToUsm, source, &elements, here, to, operands) }?;
    Ok(copy)
}

/// An array in a new allocation. `packed` must be without gaps.
fn allocate(py: Python<'_>, plan: &Plan, packed: Layout) -> PyResult<UsmArray> {
    let memory = memory_for(py, plan, packed.nbytes())?;
    UsmArray::new(&memory, plan.element.clone(), packed)
}

/// A new memory object of `nbytes`, or for one element, as other packages cannot import an array without memory.
fn memory_for<'py>(py: Python<'py>, plan: &Plan, nbytes: usize) -> PyResult<Bound<'py, PyMemory>> {
    let size = nbytes.max(plan.element.size());
    let request = request(plan.kind, size, &plan.binding);
    request.allocate_then(py, |memory| object(py, memory))
}

fn request(kind: UsmKind, size: usize, binding: &Arc<QueueBinding>) -> Request<'static> {
    Request {
        source: AllocationSource::Default,
        kind,
        size,
        alignment: 0,
        binding: Arc::clone(binding).into(),
    }
}
