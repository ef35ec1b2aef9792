//! Lists of fields: `descr` of an interface and of `numpy.dtype`, as a [`Record`], and back.

use std::fmt::Display;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::shape;
use super::shown::Shown;
use crate::errors::Explain;
use zeusm::suai::{ElementType, Error, ItemType, MAX_DEPTH, MAX_FIELDS, Record, RecordField};

/// Reads a list of `(name, type)` and `(name, type, shape)`, where a type is a type string or a nested list.
///
/// # Errors
/// `ValueError` with the field.
pub(crate) fn read(descr: &Bound<'_, PyAny>) -> PyResult<Record> {
    let mut room = MAX_FIELDS;
    nested(descr, 0, &mut room)
}

/// The depth is limited, as a Python list may contain itself, and so is the number of fields, as it may contain another list
/// many times.
fn nested(descr: &Bound<'_, PyAny>, depth: usize, room: &mut usize) -> PyResult<Record> {
    if depth >= MAX_DEPTH {
        return Err(refused(Error::DescrDepth));
    }
    let list = descr.cast::<PyList>().map_err(|_| {
        refused(format_args!(
            "'descr' must be a list of fields, not {}",
            Shown(descr)
        ))
    })?;
    *room = room
        .checked_sub(list.len())
        .ok_or_else(|| refused(Error::DescrFields))?;
    let fields: PyResult<Vec<RecordField>> = list
        .iter()
        .map(|entry| field(&entry, depth, room))
        .collect();
    Record::new(fields?).map_err(refused)
}

fn field(entry: &Bound<'_, PyAny>, depth: usize, room: &mut usize) -> PyResult<RecordField> {
    let wrong = || {
        refused(format_args!(
            "'descr' has the field {}; it must be (name, type) or (name, type, shape)",
            Shown(entry)
        ))
    };
    let parts = entry.cast::<PyTuple>().map_err(|_| wrong())?;
    if !(2..=3).contains(&parts.len()) {
        return Err(wrong());
    }
    let shape = match parts.get_item(2) {
        Err(_) => Vec::new(),
        Ok(shape) => extents(&shape).explain(entry.py(), |_| wrong())?,
    };
    let item = parts.get_item(1)?;
    Ok(RecordField {
        name: name(&parts.get_item(0)?).ok_or_else(wrong)?,
        element: match item.cast::<PyString>() {
            Ok(text) => ElementType::Item(
                text.to_string_lossy()
                    .parse::<ItemType>()
                    .map_err(refused)?,
            ),
            Err(_) => ElementType::Record(Arc::new(nested(&item, depth + 1, room)?)),
        },
        shape,
    })
}

fn extents(shape: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let extents = shape::integers(shape, "a field's shape")?;
    let extents = extents.into_iter().map(usize::try_from);
    Ok(extents.collect::<Result<_, _>>()?)
}

/// The list of a record.
pub(crate) fn list<'py>(py: Python<'py>, record: &Record) -> PyResult<Bound<'py, PyList>> {
    let entries = record.fields().iter().map(|field| {
        let name = field.name.as_str().into_pyobject(py)?.into_any();
        let element = match &field.element {
            ElementType::Item(item) => item.to_string().into_pyobject(py)?.into_any(),
            ElementType::Record(record) => list(py, record)?.into_any(),
        };
        match field.shape.as_slice() {
            [] => PyTuple::new(py, [name, element]),
            shape => PyTuple::new(py, [name, element, PyTuple::new(py, shape)?.into_any()]),
        }
    });
    PyList::new(py, entries.collect::<PyResult<Vec<_>>>()?)
}

fn refused(what: impl Display) -> PyErr {
    PyValueError::new_err(what.to_string())
}

/// A name, or the second of a pair of title and name.
fn name(part: &Bound<'_, PyAny>) -> Option<String> {
    let text = |part: &Bound<'_, PyAny>| {
        part.cast::<PyString>()
            .ok()
            .map(|text| text.to_string_lossy().into_owned())
    };
    match part.cast::<PyTuple>() {
        Ok(titled) => titled.get_item(1).ok().and_then(|part| text(&part)),
        Err(_) => text(part),
    }
}
