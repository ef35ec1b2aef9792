//! Element types: NumPy's dtypes, their names, and the lists of fields of records (`descr`).

use std::fmt::Display;
use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::shape;
use crate::errors::{Explain, caused};
use crate::imports;
use crate::interpreter::intern;
use crate::shown::naming;
use zeusm::suai::{ElementType, Error, ItemType, MAX_DEPTH, MAX_FIELDS, Record, RecordField};

const SUPPORTED: &str = "bool, int8 to int64, uint8 to uint64, float16 to float64, complex64 and complex128 in this \
                         machine's byte order, those of ml_dtypes that DLPack has, and records of these with at least one byte";

/// Reads any object that NumPy accepts as a dtype; names like "float32" do not need NumPy.
///
/// # Errors
/// `TypeError` for other objects, and for unsupported types.
pub(crate) fn read(dtype: &Bound<'_, PyAny>) -> PyResult<ElementType> {
    let py = dtype.py();
    if let Ok(name) = dtype.cast::<PyString>()
        && let Some(item) =
            ItemType::named(&name.to_string_lossy()).filter(|item| is_supported(&(*item).into()))
    {
        return Ok(item.into());
    }
    let dtype = imports::numpy(py)?.call_method1("dtype", (dtype,))?;
    let refused = |reason: &str| {
        naming(&dtype, |dtype| {
            PyTypeError::new_err(format!(
                "arrays of {dtype} are not supported, only {SUPPORTED}{reason}"
            ))
        })
    };
    let element = if !dtype.getattr(intern!(py, "names"))?.is_none() {
        // NumPy describes no fields that overlap, or that are not in the order of their offsets.
        let fields = dtype.getattr(intern!(py, "descr"));
        let fields = fields.and_then(|descr| record(&descr));
        let fields =
            fields.map_err(
                |error| match error.get_type(py).is(py.get_type::<PyValueError>()) {
                    true => naming(error.value(py), |reason| refused(&format!(": {reason}"))),
                    // That of a signal's handler.
                    false => error,
                },
            )?;
        Some(ElementType::Record(Arc::new(fields)))
    } else if dtype.getattr(intern!(py, "subdtype"))?.is_none() {
        // Types of other packages have names of their own, and are untyped bytes otherwise.
        let text = |name| dtype.getattr(name)?.extract::<String>();
        let item = match dtype.getattr(intern!(py, "isbuiltin"))?.extract()? {
            2 => ItemType::named(&text(intern!(py, "name"))?),
            _ => text(intern!(py, "str"))?.parse().ok(),
        };
        item.map(ElementType::Item)
    } else {
        None
    };
    element.filter(is_supported).ok_or_else(|| refused(""))
}

/// Whether arrays support such elements.
pub(crate) fn is_supported(element: &ElementType) -> bool {
    match element {
        // Untyped bytes are not: NumPy's buffers of them have a format that it reads as a record without fields.
        ElementType::Item(item) => {
            (item.is_standard() || item.is_narrow()) && item.order().is_native()
        }
        // Elements without bytes cannot be counted from the size of the memory.
        ElementType::Record(record) => {
            let is_usable =
                |field: &RecordField| field.is_padding() || is_supported(&field.element);
            record.size() > 0 && record.fields().iter().all(is_usable)
        }
    }
}

/// The reason why an array of such elements is refused.
pub(crate) fn unsupported(element: &ElementType) -> String {
    format!("elements of type {element} are not supported, only {SUPPORTED}")
}

/// The `numpy.dtype`.
pub(crate) fn object<'py>(py: Python<'py>, element: &ElementType) -> PyResult<Bound<'py, PyAny>> {
    match element {
        ElementType::Item(item) if item.is_narrow() => of_ml_dtypes(py, *item),
        ElementType::Item(item) => imports::numpy(py)?.call_method1("dtype", (format!("{item}"),)),
        ElementType::Record(record) => of_fields(&fields(py, record)?),
    }
}

/// The `numpy.dtype` of a type that NumPy has by `ml_dtypes` only.
fn of_ml_dtypes(py: Python<'_>, item: ItemType) -> PyResult<Bound<'_, PyAny>> {
    let (numpy, name) = (imports::numpy(py)?, item.name().unwrap_or_default());
    let kind = py.import("ml_dtypes").and_then(|it| it.getattr(name));
    let kind = kind.map_err(|error| {
        let lacks_it = error.is_instance_of::<PyImportError>(py)
            || error.is_instance_of::<PyAttributeError>(py);
        if !lacks_it {
            // That of a signal's handler.
            return error;
        }
        let explained = PyTypeError::new_err(format!(
            "NumPy has no {name}: install a version of ml_dtypes that has it, exchange the array by DLPack, or view its memory as uint{}",
            item.size() * 8
        ));
        caused(py, explained, error)
    })?;
    numpy.call_method1("dtype", (kind,))
}

/// The `numpy.dtype` of a list of fields; `numpy.dtype` itself would give padding a name.
pub(crate) fn of_fields<'py>(fields: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyAny>> {
    let format = fields.py().import("numpy.lib.format")?;
    format.call_method1("descr_to_dtype", (fields,))
}

/// The type's name: "float32", or the list of a record's fields.
pub(crate) fn name(element: &ElementType) -> String {
    match element {
        ElementType::Item(item) => match item.name() {
            Some(name) => name.to_owned(),
            None => format!("void{}", item.size() * 8),
        },
        ElementType::Record(record) => format!("{record}"),
    }
}

/// The names of a record's fields, for messages.
pub(crate) fn field_names(record: &Record) -> String {
    let names: Vec<String> = record
        .named()
        .map(|field| format!("'{}'", field.name))
        .collect();
    names.join(", ")
}

/// Reads a list of `(name, type)` and `(name, type, shape)`, where a type is a type string or a nested list.
///
/// # Errors
/// `ValueError` with the field.
pub(crate) fn record(descr: &Bound<'_, PyAny>) -> PyResult<Record> {
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
        naming(descr, |descr| {
            refused(format_args!(
                "'descr' must be a list of fields, not {descr}"
            ))
        })
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
        naming(entry, |entry| {
            refused(format_args!(
                "'descr' has the field {entry}; it must be (name, type) or (name, type, shape)"
            ))
        })
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
        name: field_name(&parts.get_item(0)?).ok_or_else(wrong)?,
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

/// The list of fields of a record.
pub(crate) fn fields<'py>(py: Python<'py>, record: &Record) -> PyResult<Bound<'py, PyList>> {
    let entries = record.fields().iter().map(|field| {
        let name = field.name.as_str().into_pyobject(py)?.into_any();
        let element = match &field.element {
            ElementType::Item(item) => format!("{item}").into_pyobject(py)?.into_any(),
            ElementType::Record(record) => fields(py, record)?.into_any(),
        };
        match field.shape.as_slice() {
            [] => PyTuple::new(py, [name, element]),
            shape => PyTuple::new(py, [name, element, PyTuple::new(py, shape)?.into_any()]),
        }
    });
    PyList::new(py, entries.collect::<PyResult<Vec<_>>>()?)
}

fn refused(what: impl Display) -> PyErr {
    PyValueError::new_err(format!("{what}"))
}

/// A name, or the second of a pair of title and name.
fn field_name(part: &Bound<'_, PyAny>) -> Option<String> {
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
