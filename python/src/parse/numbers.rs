//! Numbers: sizes, alignments, counts, flags, and the pairs of integers of DLPack.

use once_cell::race::OnceBox;
use pyo3::exceptions::{PyBufferError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};

use crate::errors::{Explain, USMAllocationError, is_of_caller, normalized};
use crate::interpreter::intern;
use crate::shown::{class_name, naming};

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

/// Whether the object is a number, such as a float, which is no integer.
pub(crate) fn is_number(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let number = object.py().import("numbers")?.getattr("Number")?;
    object.is_instance(&number)
}

/// A number of bytes to allocate.
///
/// # Errors
/// `TypeError` for other objects than integers, `ValueError` for a negative number, `USMAllocationError` for a number beyond the
/// address space.
pub(crate) fn size(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = object.py();
    match object.extract::<isize>().map(usize::try_from) {
        Ok(Ok(size)) => return Ok(size),
        Ok(Err(_)) => {}
        Err(error) => match normalized(py, error) {
            error if is_of_caller(py, &error) => return Err(error),
            error if error.is_instance_of::<PyOverflowError>(py) => {}
            _ => {
                let class = class_name(object);
                return Err(PyTypeError::new_err(format!(
                    "the number of bytes must be an integer, not {class}"
                )));
            }
        },
    }
    let is_negative = object.lt(0)?;
    Err(naming(object, |size| match is_negative {
        true => PyValueError::new_err(format!(
            "the number of bytes must not be negative, as {size} is"
        )),
        false => USMAllocationError::new_err(format!(
            "cannot allocate {size} bytes: no machine can address more than {}",
            isize::MAX
        )),
    }))
}

/// An alignment in bytes; the allocation checks that it is a power of two.
///
/// # Errors
/// `TypeError` for other objects than integers, `ValueError` for an integer out of range.
pub(crate) fn alignment(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    object.extract::<usize>().explain(object.py(), |error| {
        if error.is_instance_of::<PyTypeError>(object.py()) {
            let class = class_name(object);
            return PyTypeError::new_err(format!("alignment must be an integer, not {class}"));
        }
        naming(object, |alignment| {
            PyValueError::new_err(format!(
                "alignment must be 0 or a power of two of at most {} bytes, not {alignment}",
                zeusm::usm::LARGEST_ALIGNMENT
            ))
        })
    })
}

/// A number of bytes.
pub(crate) fn number(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<usize>> {
    let Some(value) = value else { return Ok(None) };
    if !is_integral(value)? {
        return Err(PyTypeError::new_err(format!(
            "{name} must be an integer, not {}",
            class_name(value)
        )));
    }
    let wrong = || {
        naming(value, |value| {
            let most = isize::MAX;
            PyValueError::new_err(format!("{name} must be 0 to {most}, not {value}"))
        })
    };
    let number = value.extract::<isize>().explain(value.py(), |_| wrong())?;
    usize::try_from(number).map(Some).map_err(|_| wrong())
}

/// The argument `copy`: a bool or, as in dpctl and NumPy, an integer, where 0 means false.
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
            Err(error) => Err(error).explain(value.py(), |_| {
                naming(&value, |value| {
                    PyTypeError::new_err(format!(
                        "copy must be True, False or an integer, not {value}"
                    ))
                })
            }),
        }
    }
}

/// The offset of an element from the beginning of the memory.
///
/// # Errors
/// `TypeError` for other objects than integers, `ValueError` for an integer out of range.
pub(crate) fn offset(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    integer("offset", value)
}

/// An address.
///
/// # Errors
/// As of [`offset`].
pub(crate) fn address(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    integer("ptr", value)
}

/// The integer of the argument `name`, converted to its Rust type.
fn integer<'a, 'py, T>(name: &str, value: &'a Bound<'py, PyAny>) -> PyResult<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    integer_or(value, |value, is_integer| match is_integer {
        true => PyValueError::new_err(format!("{name} is {value}, which is out of range")),
        false => PyTypeError::new_err(format!("{name} must be an integer, not {value}")),
    })
}

/// An integer, converted to its Rust type.
///
/// # Errors
/// That of `refused`, which is given the object's text, and whether it is an integer, which is out of range then.
pub(crate) fn integer_or<'a, 'py, T>(
    value: &'a Bound<'py, PyAny>,
    refused: impl FnOnce(&str, bool) -> PyErr,
) -> PyResult<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    let py = value.py();
    value.extract().explain(py, |error| {
        let is_integer = error.is_instance_of::<PyOverflowError>(py);
        naming(value, |value| refused(value, is_integer))
    })
}

/// The major number of the argument `max_version`: all newer versions are known to include those before.
///
/// # Errors
/// `TypeError` for other objects than a pair of integers, `ValueError` for an integer out of range.
pub(crate) fn dlpack_version(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let (major, minor) = pair(value, "max_version")?;
    let _: i64 = integer("max_version", &minor)?;
    integer("max_version", &major)
}

/// The type and the number of a device, from the argument `name`. Some exporters give the type as a member of `enum.Enum`, as
/// in the array API's specification.
///
/// # Errors
/// `TypeError` for other objects than a pair of integers, `BufferError` for an integer that no device has.
pub(crate) fn dlpack_device(value: &Bound<'_, PyAny>, name: &str) -> PyResult<(i32, i32)> {
    let py = value.py();
    let (kind, id) = pair(value, name)?;
    let number = |part: Bound<'_, PyAny>| {
        let number = match part.extract::<i32>() {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                match part.getattr_opt(intern!(py, "value"))? {
                    Some(member) => member.extract(),
                    None => Err(error),
                }
            }
            number => number,
        };
        number.explain(py, |error| {
            if !error.is_instance_of::<PyOverflowError>(py) {
                return no_pair(value, name);
            }
            naming(value, |value| {
                PyBufferError::new_err(format!("{name} is {value}, and no device has this number"))
            })
        })
    };
    Ok((number(kind)?, number(id)?))
}

fn pair<'py>(
    value: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    match value.cast::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => pair.extract(),
        _ => Err(no_pair(value, name)),
    }
}

fn no_pair(value: &Bound<'_, PyAny>, name: &str) -> PyErr {
    naming(value, |value| {
        PyTypeError::new_err(format!("{name} must be a pair of integers, not {value}"))
    })
}
