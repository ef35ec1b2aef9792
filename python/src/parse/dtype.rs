//! Element types: NumPy's dtypes and their names.

use std::sync::Arc;

use crate::imports;
use crate::interpreter::intern;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::record;
use crate::errors::Explain;
use zeusm::suai::{ElementType, ItemType, Kind, Record, RecordField};

const SUPPORTED: &str = "bool, int8 to int64, uint8 to uint64, float16 to float64, complex64 and complex128 in this \
                         machine's byte order, and records of these with at least one byte";

/// Reads any object that NumPy accepts as a dtype; names like "float32" do not need NumPy.
///
/// # Errors
/// `TypeError` for other objects, and for unsupported types.
pub(crate) fn read(dtype: &Bound<'_, PyAny>) -> PyResult<ElementType> {
    let py = dtype.py();
    if let Ok(name) = dtype.cast::<PyString>()
        && let Some(item) = named(&name.to_string_lossy())
    {
        return Ok(item.into());
    }
    let dtype = imports::numpy(py)?.call_method1("dtype", (dtype,))?;
    let refused = |reason: String| {
        PyTypeError::new_err(format!(
            "arrays of {dtype} are not supported, only {SUPPORTED}{reason}"
        ))
    };
    let element = if !dtype.getattr(intern!(py, "names"))?.is_none() {
        // NumPy describes no fields that overlap, or that are not in the order of their offsets.
        let fields = dtype.getattr(intern!(py, "descr"));
        let fields = fields.and_then(|descr| record::read(&descr));
        let fields = fields.explain(py, |error| refused(format!(": {}", error.value(py))))?;
        Some(ElementType::Record(Arc::new(fields)))
    } else if dtype.getattr(intern!(py, "subdtype"))?.is_none() {
        let text: String = dtype.getattr(intern!(py, "str"))?.extract()?;
        text.parse().ok().map(ElementType::Item)
    } else {
        None
    };
    element
        .filter(is_supported)
        .ok_or_else(|| refused(String::new()))
}

/// Whether arrays support such elements.
pub(crate) fn is_supported(element: &ElementType) -> bool {
    match element {
        ElementType::Item(item) => {
            let computes = match item.kind() {
                // NumPy's buffers of untyped bytes have a format that it reads as a record without fields.
                Kind::Void => false,
                Kind::Float => item.size() <= 8,
                Kind::Complex => item.size() <= 16,
                Kind::Bool | Kind::Int | Kind::Uint => true,
            };
            computes && item.order().is_native()
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
        ElementType::Item(item) => imports::numpy(py)?.call_method1("dtype", (item.to_string(),)),
        ElementType::Record(record) => of_fields(&record::list(py, record)?),
    }
}

/// The `numpy.dtype` of a list of fields; `numpy.dtype` itself would give padding a name.
pub(crate) fn of_fields<'py>(fields: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyAny>> {
    let format = fields.py().import("numpy.lib.format")?;
    format.call_method1("descr_to_dtype", (fields,))
}

/// The type's name: "float32", or the list of a record's fields.
pub(crate) fn name(element: &ElementType) -> String {
    let item = match element {
        ElementType::Item(item) => item,
        ElementType::Record(record) => return record.to_string(),
    };
    let bits = item.size() * 8;
    match item.kind() {
        Kind::Bool => "bool".to_owned(),
        Kind::Int => format!("int{bits}"),
        Kind::Uint => format!("uint{bits}"),
        Kind::Float => format!("float{bits}"),
        Kind::Complex => format!("complex{bits}"),
        Kind::Void => format!("void{bits}"),
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

fn named(text: &str) -> Option<ItemType> {
    if text == "bool" {
        return "b1".parse().ok();
    }
    let digits = text.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    let letter = match text.strip_suffix(digits)? {
        "int" => 'i',
        "uint" => 'u',
        "float" => 'f',
        "complex" => 'c',
        _ => return None,
    };
    let bits = digits.parse::<usize>().ok()?;
    format!("{letter}{}", bits / 8)
        .parse()
        .ok()
        .filter(|&item| bits.is_multiple_of(8) && is_supported(&ElementType::Item(item)))
}
