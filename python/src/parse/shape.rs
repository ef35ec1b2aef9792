//! Shapes, strides and axes.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::errors::Explain;
use zeusm::suai::Order;

/// An integer, or a sequence of integers.
///
/// # Errors
/// `TypeError` for other objects, `ValueError` for integers of more than 64 bits.
pub(crate) fn integers(value: &Bound<'_, PyAny>, role: &str) -> PyResult<Vec<i64>> {
    let integer = |value: &Bound<'_, PyAny>| {
        value.extract::<i64>().explain(value.py(), |error| {
            if error.is_instance_of::<PyOverflowError>(value.py()) {
                PyValueError::new_err(format!("{role} has {value}, which is out of range"))
            } else {
                PyTypeError::new_err(format!(
                    "{role} must be an integer or a sequence of integers, not {value}"
                ))
            }
        })
    };
    if value.is_instance_of::<PyString>() {
        return integer(value).map(|size| vec![size]);
    }
    match value.try_iter() {
        Ok(items) => items.map(|item| integer(&item?)).collect(),
        Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => {
            integer(value).map(|size| vec![size])
        }
        // The caller's own.
        Err(error) => Err(error),
    }
}

/// The arguments of a method that takes integers separately or as one sequence.
pub(crate) fn spread(arguments: &Bound<'_, PyTuple>, role: &str) -> PyResult<Vec<i64>> {
    match arguments.get_item(0) {
        Ok(only) if arguments.len() == 1 => integers(&only, role),
        _ => integers(arguments.as_any(), role),
    }
}

/// 'C' or 'F'.
pub(crate) fn order(letter: &str) -> PyResult<Order> {
    match letter {
        "C" => Ok(Order::RowMajor),
        "F" => Ok(Order::ColumnMajor),
        other => Err(PyValueError::new_err(format!(
            "order must be 'C' or 'F', not {other:?}"
        ))),
    }
}
