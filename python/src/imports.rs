//! Imports of other packages at their first use, and the errors of imports that fail.

use pyo3::exceptions::{PyImportError, PyModuleNotFoundError};
use pyo3::prelude::*;

use crate::interpreter::intern;
use crate::parking;

/// dpctl.
pub(crate) fn dpctl(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    parking::import(intern!(py, "dpctl"))
}

/// NumPy, which only some functions need; if it is missing, the error has the command to install it.
pub(crate) fn numpy(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let numpy = parking::import(intern!(py, "numpy")).map(Bound::into_any);
    numpy.map_err(|error| {
        if !error.is_instance_of::<PyModuleNotFoundError>(py) {
            return error;
        }
        missing(py, error, "this needs NumPy: pip install numpy")
    })
}

/// The error of an import that failed, with the way to make it succeed.
pub(crate) fn missing(py: Python<'_>, cause: PyErr, remedy: &str) -> PyErr {
    let message = format!("{remedy} ({})", cause.value(py));
    let error = match cause.is_instance_of::<PyModuleNotFoundError>(py) {
        true => PyModuleNotFoundError::new_err(message),
        false => PyImportError::new_err(message),
    };
    error.set_cause(py, Some(cause));
    error
}
