//! Arrays of JAX, whose plugin for Intel GPUs is for Linux only.

use pyo3::prelude::*;

use super::ResolvedSyclObject;

/// None: the array is on no device of SYCL.
pub(crate) fn of_jax(_x: &Bound<'_, PyAny>) -> PyResult<Option<ResolvedSyclObject>> {
    Ok(None)
}
