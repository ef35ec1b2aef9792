//! Pickled states: their protocols, and the version, which is the first item of each.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The protocol of the state that `__reduce__` returns.
pub(crate) const PLAIN_PROTOCOL: i32 = 2;

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
