//! Shapes, strides and axes.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyIterator, PyList, PyString, PyTuple};

use super::numbers::integer_or;
use zeusm::suai::{MAX_NDIM, Order};

/// An integer, or a sequence of integers.
///
/// # Errors
/// `TypeError` for other objects, `ValueError` for integers of more than 64 bits, and for an iterable of more than
/// [`MAX_NDIM`].
pub(crate) fn integers(value: &Bound<'_, PyAny>, role: &str) -> PyResult<Vec<i64>> {
    let integer = |value: &Bound<'_, PyAny>| {
        integer_or(value, |value, is_integer| match is_integer {
            true => PyValueError::new_err(format!("{role} has {value}, which is out of range")),
            false => PyTypeError::new_err(format!(
                "{role} must be an integer or a sequence of integers, not {value}"
            )),
        })
    };
    // The iteration over an integer would raise an error, which takes as long as all else.
    if value.is_exact_instance_of::<PyInt>() || value.is_instance_of::<PyString>() {
        return integer(value).map(|size| vec![size]);
    }
    match value.try_iter() {
        // Their items exist, and all are counted.
        Ok(items)
            if value.is_exact_instance_of::<PyTuple>()
                || value.is_exact_instance_of::<PyList>() =>
        {
            items.map(|item| integer(&item?)).collect()
        }
        Ok(items) => bounded(items, integer, |what| {
            PyValueError::new_err(format!("{role} {what}"))
        }),
        Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => {
            integer(value).map(|size| vec![size])
        }
        // The caller's own.
        Err(error) => Err(error),
    }
}

/// The integers of an iterable, which may have no end: no more than [`MAX_NDIM`] are read.
pub(super) fn bounded<'py>(
    items: Bound<'py, PyIterator>,
    integer: impl Fn(&Bound<'py, PyAny>) -> PyResult<i64>,
    refused: impl FnOnce(String) -> PyErr,
) -> PyResult<Vec<i64>> {
    let mut integers = Vec::new();
    for item in items {
        let item = item?;
        if integers.len() == MAX_NDIM {
            return Err(refused(format!("has more than {MAX_NDIM} integers")));
        }
        integers.push(integer(&item)?);
    }
    Ok(integers)
}

/// The arguments of a method that takes integers separately or as one sequence.
pub(crate) fn spread(arguments: &Bound<'_, PyTuple>, role: &str) -> PyResult<Vec<i64>> {
    match arguments.get_item(0) {
        Ok(only) if arguments.len() == 1 => integers(&only, role),
        _ => integers(arguments.as_any(), role),
    }
}

/// 'C' or 'F'; NumPy takes small letters, too.
pub(crate) fn order(letter: &str) -> PyResult<Order> {
    one_of(letter, "'C' or 'F'")
}

/// As [`order`], or 'K' for the order of the source.
pub(crate) fn order_or_kept(letter: &str) -> PyResult<Option<Order>> {
    match letter {
        "K" | "k" => Ok(None),
        letter => one_of(letter, "'C', 'F' or 'K'").map(Some),
    }
}

fn one_of(letter: &str, letters: &str) -> PyResult<Order> {
    match letter {
        "C" | "c" => Ok(Order::RowMajor),
        "F" | "f" => Ok(Order::ColumnMajor),
        other => Err(PyValueError::new_err(format!(
            "order must be {letters}, not {other:?}"
        ))),
    }
}
