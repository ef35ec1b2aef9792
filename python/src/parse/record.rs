//! `descr` of an interface: a list of fields as a [`Record`].

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::interface::malformed;
use crate::errors::{Explain, IntoException, OrRaise, passes};
use zeusm::suai::{Error, FieldType, ItemType, MAX_DEPTH, Record, RecordField};

/// Reads a list of `(name, type)` and `(name, type, shape)`, where a type is a type string or a nested list.
///
/// # Errors
/// `ValueError` with the field.
pub(crate) fn read(descr: &Bound<'_, PyAny>) -> PyResult<Record> {
    nested(descr, 0)
}

/// The depth is limited, as a Python list may contain itself.
fn nested(descr: &Bound<'_, PyAny>, depth: usize) -> PyResult<Record> {
    if depth >= MAX_DEPTH {
        return Err(Error::DescrDepth.into_exception());
    }
    let list = descr.cast::<PyList>().map_err(|_| {
        malformed(format_args!(
            "'descr' must be a list of fields, not {descr}"
        ))
    })?;
    let fields: PyResult<Vec<RecordField>> =
        list.iter().map(|entry| field(&entry, depth)).collect();
    Record::new(fields?).or_raise()
}

fn field(entry: &Bound<'_, PyAny>, depth: usize) -> PyResult<RecordField> {
    let wrong = || {
        malformed(format_args!(
            "'descr' has the field {entry}; it must be (name, type) or (name, type, shape)"
        ))
    };
    let py = entry.py();
    let parts = entry.cast::<PyTuple>().map_err(|_| wrong())?;
    if !(2..=3).contains(&parts.len()) {
        return Err(wrong());
    }
    let shape = match parts.get_item(2) {
        Err(_) => Vec::new(),
        Ok(shape) => match shape.extract::<Vec<usize>>() {
            Err(error) if !passes(py, &error) => vec![shape.extract().explain(py, |_| wrong())?],
            extents => extents?,
        },
    };
    let item = parts.get_item(1)?;
    Ok(RecordField {
        name: name(&parts.get_item(0)?).ok_or_else(wrong)?,
        item: match item.cast::<PyString>() {
            Ok(text) => FieldType::Item(text.to_string_lossy().parse::<ItemType>().or_raise()?),
            Err(_) => FieldType::Record(nested(&item, depth + 1)?),
        },
        shape,
    })
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
