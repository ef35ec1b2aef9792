//! Functions for C, C++ and Cython: zeusm's own C API, the functions of `dpctl.memory` for Cython, and PyTorch's allocator.

mod cython;
mod functions;
#[cfg(target_os = "linux")]
mod torch;
#[cfg(windows)]
#[path = "torch/windows.rs"]
mod torch;

pub(crate) use torch::torch_pools;

use pyo3::prelude::*;
use pyo3::types::PyModule;

/// Adds the capsules of both to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("_C_API", functions::capsule(module.py())?)?;
    module.add("__pyx_capi__", cython::capsules(module.py())?)
}
