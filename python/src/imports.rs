//! Imports of other packages at their first use, and the errors of imports that fail.

use std::fs::File;

use once_cell::race::OnceBox;
use pyo3::exceptions::{PyImportError, PyModuleNotFoundError};
use pyo3::prelude::*;

use crate::errors::caused;
use crate::interpreter::intern;

/// dpctl.
pub(crate) fn dpctl(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "dpctl"))
}

/// NumPy, which only some functions need; if it is missing, the error has the command to install it. Once imported, it serves
/// until the end of the interpreter, which imports nothing any more.
pub(crate) fn numpy(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static NUMPY: OnceBox<Py<PyAny>> = OnceBox::new();
    let imported = NUMPY.get_or_try_init(|| {
        let numpy = py.import(intern!(py, "numpy"));
        numpy.map(|numpy| Box::new(numpy.into_any().unbind()))
    });
    imported
        .map(|numpy| numpy.bind(py).clone())
        .map_err(|error| {
            if !error.is_instance_of::<PyModuleNotFoundError>(py) {
                return error;
            }
            missing(py, error, "this needs NumPy: pip install numpy")
        })
}

/// Whether an import that failed fails again, as the package is missing or broken: it is not one in progress, nor did it lack a
/// file descriptor, and no other code, such as a signal's handler, has ended it.
pub(crate) fn fails_again(py: Python<'_>, error: &PyErr, package: &str) -> PyResult<bool> {
    let modules = py.import(intern!(py, "sys"))?.getattr("modules")?;
    Ok(error.is_instance_of::<PyImportError>(py)
        && !modules.contains(package)?
        && File::open("/").is_ok())
}

/// The error of an import that failed, with the way to make it succeed: that for a package which is not installed, or the
/// doctor.
pub(crate) fn missing(py: Python<'_>, cause: PyErr, remedy: &str) -> PyErr {
    let text = cause.value(py).to_string();
    let error = match cause.is_instance_of::<PyModuleNotFoundError>(py) {
        true => PyModuleNotFoundError::new_err(format!("{remedy} ({text})")),
        false => PyImportError::new_err(format!(
            "a package that zeusm needs is installed and cannot be imported ({text}): `python -m zeusm doctor` names the remedy"
        )),
    };
    caused(py, error, cause)
}
