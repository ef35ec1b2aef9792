//! Functions for C, C++ and Cython: zeusm's own C API, and the functions of `dpctl.memory` for Cython.

mod cython;
mod functions;

use pyo3::prelude::*;
use pyo3::types::PyModule;

/// Adds the capsules of both to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("_C_API", functions::capsule(module.py())?)?;
    module.add("__pyx_capi__", cython::capsules(module.py())?)
}
