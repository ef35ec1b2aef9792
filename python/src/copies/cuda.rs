//! Copies of bytes between memory objects and CUDA memory.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::cuda;
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
    let (py, to) = (memory.py(), memory.get());
    to.check_writable()?;
    to.check_fits("source", array.layout.extent().len())?;
    let bytes = bytes(array, array.layout.extent().len())?;
    let operands = (owner.clone().unbind(), Pinned::new(memory)?);
    let address = to.for_queue(py)?;
    // SAFETY: the operands own both sides, and the destination is large enough.
    unsafe { cuda::copy_from(py, array, &bytes, to.context_device(), address, operands) }.map(drop)
}

/// Copies the memory to the beginning of an array in CUDA memory, which must not have gaps.
pub(super) fn copy_to(
    memory: &Bound<'_, PyMemory>,
    owner: &Bound<'_, PyAny>,
    array: &Interface,
) -> PyResult<()> {
    let (py, from) = (memory.py(), memory.get());
    if array.read_only {
        return Err(PyValueError::new_err("the destination is read-only"));
    }
    let room = array.layout.nbytes();
    if room != array.layout.extent().len() {
        return Err(PyValueError::new_err(
            "the destination has gaps between its elements",
        ));
    }
    if room < from.nbytes {
        return Err(PyValueError::new_err(format!(
            "the destination has {room} bytes, the memory {}",
            from.nbytes
        )));
    }
    let bytes = bytes(array, from.nbytes)?;
    let operands = (owner.clone().unbind(), Pinned::new(memory)?);
    let address = from.for_queue(py)?;
    // SAFETY: the operands own both sides, and the destination is large enough.
    unsafe { cuda::copy_to(py, array, &bytes, from.context_device(), address, operands) }.map(drop)
}

/// The first `size` bytes of the array's extent, relative to its pointer.
fn bytes(array: &Interface, size: usize) -> PyResult<Layout> {
    let first = array.layout.extent().start() as i64;
    Layout::new(&[size as i64], None, first, 1).or_raise()
}
