//! Imports of other packages at their first use, and the errors of imports that fail.

use std::io;

use once_cell::race::OnceBox;
use pyo3::exceptions::{PyImportError, PyModuleNotFoundError, PyValueError};
use pyo3::prelude::*;

use crate::errors::caused;
use crate::interpreter::intern;
use crate::shown::naming;

/// dpctl.
///
/// # Errors
/// `ImportError` where dpctl is missing or broken; else the error of other code that ran during the import, such as a signal's
/// handler.
pub(crate) fn dpctl(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "dpctl")).map_err(|error| {
        // That of modules which were compiled for another version of a package is a `ValueError`.
        let is_of_dpctl =
            error.is_instance_of::<PyImportError>(py) || error.is_instance_of::<PyValueError>(py);
        match is_of_dpctl {
            true => no_dpctl(py, error),
            false => error,
        }
    })
}

/// The error where dpctl cannot be imported.
pub(crate) fn no_dpctl(py: Python<'_>, cause: PyErr) -> PyErr {
    missing(py, cause, "SYCL objects need dpctl: pip install dpctl")
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

/// Whether an import that failed would fail again, as the package is missing or broken. It would not if the package is being
/// imported, if the process had no file descriptor left, or if the error is of other code, such as a signal's handler.
pub(crate) fn fails_again(py: Python<'_>, error: &PyErr, package: &str) -> PyResult<bool> {
    if !error.is_instance_of::<PyImportError>(py) {
        return Ok(false);
    }
    // At the end of the interpreter nothing is imported any more.
    let Ok(sys) = py.import(intern!(py, "sys")) else {
        return Ok(true);
    };
    let module = sys.getattr("modules")?.call_method1("get", (package,))?;
    let spec = module.getattr_opt("__spec__")?;
    // As the import system marks a module whose code it is executing.
    let mark = spec
        .map(|spec| spec.getattr_opt("_initializing"))
        .transpose()?;
    let is_importing = mark
        .flatten()
        .is_some_and(|mark| mark.is_truthy().unwrap_or(false));
    Ok(!is_importing && io::pipe().is_ok())
}

/// The error of an import that failed, with the way to make it succeed: that for a package which is not installed, or the
/// doctor.
fn missing(py: Python<'_>, cause: PyErr, remedy: &str) -> PyErr {
    let is_missing = cause.is_instance_of::<PyModuleNotFoundError>(py);
    let error = naming(cause.value(py), |text| match is_missing {
        true => PyModuleNotFoundError::new_err(format!("{remedy} ({text})")),
        false => PyImportError::new_err(format!(
            "a package that zeusm needs is installed and cannot be imported ({text}): `python -m zeusm doctor` names the remedy"
        )),
    });
    caused(py, error, cause)
}
