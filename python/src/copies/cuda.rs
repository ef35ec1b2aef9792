//! Copies of bytes between memory objects and CUDA memory.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::cuda::{self, Direction};
use crate::errors::OrRaise;
use crate::memory::{Pinned, PyMemory};
use zeusm::cuda::Interface;
use zeusm::suai::Layout;

/// Copies the extent of an array in CUDA memory, from its first element to its last, to the beginning of the memory.
pub(super) fn copy_from(
    memory: &Bound<'_, PyMemory>,
    owner: &Bound<'_, PyAny>,
    array: &Interface,
) -> PyResult<()> {
    let size = array.layout.extent().len();
    memory.get().check_takes(size)?;
    copy(Direction::ToUsm, memory, owner, array, size)
}

/// Copies the memory to the beginning of an array in CUDA memory, which must not have gaps.
pub(super) fn copy_to(
    memory: &Bound<'_, PyMemory>,
    owner: &Bound<'_, PyAny>,
    array: &Interface,
) -> PyResult<()> {
    let size = memory.get().nbytes;
    if array.read_only {
        return Err(PyValueError::new_err("the destination is read-only"));
    }
    let room = array.layout.nbytes();
    if room != array.layout.extent().len() || !array.layout.is_distinct() {
        return Err(PyValueError::new_err(
            "the destination has gaps between its elements, or they overlap",
        ));
    }
    if room < size {
        return Err(PyValueError::new_err(format!(
            "the destination has {room} bytes, the memory {size}"
        )));
    }
    copy(Direction::ToCuda, memory, owner, array, size)
}

/// Copies between the first bytes of the memory and of the array's extent, which both have `size`.
fn copy(
    direction: Direction,
    memory: &Bound<'_, PyMemory>,
    owner: &Bound<'_, PyAny>,
    array: &Interface,
    size: usize,
) -> PyResult<()> {
    let py = memory.py();
    let first = array.layout.extent().start as i64;
    let bytes = Layout::new(&[size as i64], None, first, 1).or_raise()?;
    let operands = (owner.clone().unbind(), Pinned::new(memory)?);
    let (context_device, usm) = (memory.get().context_device(), memory.get().for_queue(py)?);
    // SAFETY: the operands own both sides, which have at least `size` bytes.
    unsafe { cuda::copy(py, direction, array, &bytes, context_device, usm, operands) }.map(drop)
}
