//! Python's indices: integers, slices, Ellipsis and None.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PySlice, PyTuple};

use super::integer_or;
use crate::shown::naming;
use zeusm::suai::{Index, Layout};

/// The selection of `key` in `array[key]`, with an entry for every dimension.
///
/// # Errors
/// `IndexError` for entries that do not select a view, and for too many entries.
pub(crate) fn read(layout: &Layout, key: &Bound<'_, PyAny>) -> PyResult<Vec<Index>> {
    let given: Vec<Bound<'_, PyAny>> = match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![key.clone()],
    };
    let is_ellipsis = |entry: &Bound<'_, PyAny>| entry.is_instance_of::<PyEllipsis>();
    let named = given
        .iter()
        .filter(|entry| !entry.is_none() && !is_ellipsis(entry))
        .count();
    let Some(left_out) = layout.ndim().checked_sub(named) else {
        return Err(PyIndexError::new_err(format!(
            "too many indices: the array has {} dimensions, but {named} were indexed",
            layout.ndim()
        )));
    };
    let mut sizes = layout.shape().iter().copied();
    let mut entries = Vec::new();
    let mut filled = false;
    for entry in &given {
        if is_ellipsis(entry) {
            if filled {
                return Err(PyIndexError::new_err(
                    "an index can have only one Ellipsis ('...')",
                ));
            }
            filled = true;
            entries.extend(sizes.by_ref().take(left_out).map(whole));
        } else if entry.is_none() {
            entries.push(Index::NewAxis);
        } else {
            let size = sizes.next().unwrap_or(0); // `named` are no more than the dimensions.
            entries.push(one(entry, size)?);
        }
    }
    entries.extend(sizes.map(whole));
    Ok(entries)
}

fn whole(length: usize) -> Index {
    Index::Slice {
        start: 0,
        step: 1,
        length,
    }
}

fn one(entry: &Bound<'_, PyAny>, size: usize) -> PyResult<Index> {
    if let Ok(slice) = entry.cast::<PySlice>() {
        let found = slice.indices(size.cast_signed())?;
        return Ok(Index::Slice {
            start: found.start,
            step: found.step,
            length: found.slicelength,
        });
    }
    let wrong = |entry: &str| {
        PyIndexError::new_err(format!(
            "an array is indexed by integers, slices, Ellipsis and None (a new axis), not by {entry}: masks and lists of \
             indices make copies, as dpnp.asarray(array) does with them"
        ))
    };
    // In NumPy bools are masks, which select a copy.
    if entry.is_instance_of::<PyBool>() {
        return Err(naming(entry, wrong));
    }
    let at = integer_or(entry, |entry, is_integer| match is_integer {
        true => PyIndexError::new_err(format!(
            "index {entry} is out of bounds for an axis of size {size}"
        )),
        false => wrong(entry),
    });
    at.map(Index::At)
}
