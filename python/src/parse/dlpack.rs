//! The pairs of integers that are arguments in the DLPack protocol.

use pyo3::exceptions::{PyBufferError, PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::numbers::integer;
use super::shown::Shown;
use crate::errors::Explain;

/// A version: its major number decides, and all newer ones are known to include this one.
pub(crate) struct Version {
    pub(crate) major: i64,
}

impl Version {
    /// Reads the argument `max_version`.
    ///
    /// # Errors
    /// `TypeError` for other objects than a pair of integers, `ValueError` for an integer out of range.
    pub(crate) fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (major, minor) = pair(value, "max_version")?;
        let _: i64 = integer(&minor, "max_version")?;
        Ok(Self {
            major: integer(&major, "max_version")?,
        })
    }
}

/// Reads the type and the number of a device from the argument `name`.
///
/// # Errors
/// `TypeError` for other objects than a pair of integers, `BufferError` for an integer that no device has.
pub(crate) fn device(value: &Bound<'_, PyAny>, name: &str) -> PyResult<(i32, i32)> {
    let py = value.py();
    let (kind, id) = pair(value, name)?;
    let number = |part: Bound<'_, PyAny>| {
        part.extract::<i32>().explain(py, |error| {
            if error.is_instance_of::<PyOverflowError>(py) {
                let value = Shown(value);
                PyBufferError::new_err(format!("{name} is {value}, and no device has this number"))
            } else {
                no_pair(value, name)
            }
        })
    };
    Ok((number(kind)?, number(id)?))
}

fn pair<'py>(
    value: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    value
        .cast::<PyTuple>()
        .ok()
        .and_then(|tuple| tuple.extract().ok())
        .ok_or_else(|| no_pair(value, name))
}

fn no_pair(value: &Bound<'_, PyAny>, name: &str) -> PyErr {
    let value = Shown(value);
    PyTypeError::new_err(format!("{name} must be a pair of integers, not {value}"))
}
