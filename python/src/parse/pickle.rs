//! The version of a pickled state, which is its first item.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Checks the version before the rest of the state is read.
///
/// # Errors
/// `ValueError` for any other version than `known`.
pub(crate) fn check_version(of: &str, found: u32, known: u32) -> PyResult<()> {
    if found == known {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "the pickle of {of} has version {found}, and this zeusm reads version {known}: use the zeusm that wrote it, or a \
         newer one"
    )))
}
