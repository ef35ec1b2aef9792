//! PyTorch's allocator, which cannot throw the exceptions of Microsoft's C++ from here.

use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::pool::PyMemoryPool;
use zeusm::Error;

/// # Errors
/// `LevelZeroError`, always.
#[pyfunction(name = "_torch_pools")]
pub(crate) fn torch_pools(_pools: Vec<Py<PyMemoryPool>>) -> PyResult<()> {
    Err(Error::LinuxOnly("PyTorch's allocator")).or_raise()
}
