//! Numbers: sizes, alignments, counts and flags.

use once_cell::race::OnceBox;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::shown::Shown;
use crate::errors::{Explain, USMAllocationError};

/// Whether the object is an integer of Python or NumPy. An array is not, although it may have `__index__`.
pub(crate) fn is_integral(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static INTEGRAL: OnceBox<Py<PyAny>> = OnceBox::new();
    if object.is_exact_instance_of::<PyInt>() {
        return Ok(true);
    }
    let py = object.py();
    let integral = INTEGRAL.get_or_try_init(|| -> PyResult<_> {
        let integral = py.import("numbers")?.getattr("Integral")?;
        Ok(Box::new(integral.unbind()))
    })?;
    object.is_instance(integral.bind(py))
}

/// A number of bytes to allocate.
///
/// # Errors
/// `ValueError` for a negative number, `USMAllocationError` for a number beyond the address space.
pub(crate) fn size(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    match object.extract::<isize>() {
        Ok(size) => {
            if let Ok(size) = usize::try_from(size) {
                return Ok(size);
            }
        }
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {}
        Err(error) => return Err(error),
    }
    if object.lt(0)? {
        return Err(PyValueError::new_err(format!(
            "the number of bytes must not be negative, as {} is",
            Shown(object)
        )));
    }
    Err(USMAllocationError::new_err(format!(
        "cannot allocate {} bytes: no machine can address more than {}",
        Shown(object),
        isize::MAX
    )))
}

/// An alignment in bytes; the allocation checks that it is a power of two.
///
/// # Errors
/// `TypeError` for other objects than integers, `ValueError` for an integer out of range.
pub(crate) fn alignment(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    object.extract::<usize>().explain(object.py(), |error| {
        if error.is_instance_of::<PyTypeError>(object.py()) {
            return PyTypeError::new_err(format!(
                "alignment must be an integer, not {}",
                object.get_type()
            ));
        }
        PyValueError::new_err(format!(
            "alignment must be 0 or a power of two of at most {} bytes, not {}",
            zeusm::usm::LARGEST_ALIGNMENT,
            Shown(object)
        ))
    })
}

/// A number of bytes.
pub(crate) fn number(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<usize>> {
    let Some(value) = value else { return Ok(None) };
    if !is_integral(value)? {
        return Err(PyTypeError::new_err(format!(
            "{name} must be an integer, not {}",
            value.get_type().name()?
        )));
    }
    let wrong = || {
        let (most, value) = (isize::MAX, Shown(value));
        PyValueError::new_err(format!("{name} must be 0 to {most}, not {value}"))
    };
    let number = value.extract::<isize>().explain(value.py(), |_| wrong())?;
    usize::try_from(number).map(Some).map_err(|_| wrong())
}

/// A bool, or, as in dpctl, an integer, where 0 means false.
pub(crate) struct BoolOrInt(pub(crate) bool);

impl<'py> FromPyObject<'_, 'py> for BoolOrInt {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(on) = value.extract() {
            return Ok(Self(on));
        }
        match value.extract::<i64>() {
            Ok(number) => Ok(Self(number != 0)),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(Self(true)),
            Err(error) => Err(error),
        }
    }
}

/// The offset of an element from the beginning of the memory.
///
/// # Errors
/// `TypeError` for other objects than integers, `ValueError` for an integer out of range.
pub(crate) fn offset(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    integer(value, "offset")
}

/// An address.
///
/// # Errors
/// As of [`offset`].
pub(crate) fn address(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    integer(value, "ptr")
}

/// The integer of the argument `name`, converted to its Rust type.
pub(super) fn integer<'py, T>(value: &Bound<'py, PyAny>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    let py = value.py();
    value.extract().explain(py, |error: PyErr| {
        let value = Shown(value);
        if error.is_instance_of::<PyOverflowError>(py) {
            PyValueError::new_err(format!("{name} is {value}, which is out of range"))
        } else {
            PyTypeError::new_err(format!("{name} must be an integer, not {value}"))
        }
    })
}
