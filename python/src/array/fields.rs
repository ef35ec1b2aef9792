//! Records: the fields of an array as arrays, and which elements other packages can use in place.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::UsmArray;
use super::class::invalid;
use crate::memory::object;
use crate::parse::dtype;
use zeusm::suai::{ElementType, ItemType};

/// The field that a key names, as a view; `None` for keys that select elements.
///
/// # Errors
/// `IndexError` for a name that there is no field of, and for several names.
pub(super) fn selected(array: &UsmArray, key: &Bound<'_, PyAny>) -> PyResult<Option<UsmArray>> {
    let Ok(name) = key.cast::<PyString>() else {
        let is_names = |names: &Bound<'_, PyList>| {
            !names.is_empty() && names.iter().all(|name| name.is_instance_of::<PyString>())
        };
        return match key.cast::<PyList>() {
            Ok(names) if is_names(names) => Err(PyIndexError::new_err(format!(
                "an array of zeusm is indexed by one field name at a time, not by {names}: a copy to several fields would \
                 overwrite the bytes between them"
            ))),
            _ => Ok(None),
        };
    };
    let Some(record) = array.element.record() else {
        return Err(PyIndexError::new_err(format!(
            "the elements are of {} and have no field '{name}'",
            dtype::name(&array.element)
        )));
    };
    let (offset, field) = record.find(&name.to_string_lossy()).ok_or_else(|| {
        PyIndexError::new_err(format!(
            "there is no field '{name}', only {}",
            dtype::field_names(record)
        ))
    })?;
    let size = field.element.size();
    let layout = array.layout.field(offset, &field.shape, size);
    let layout = layout.map_err(|error| invalid(&error))?;
    if layout.element_offset().is_ok() {
        return array.of(key.py(), field.element.clone(), layout).map(Some);
    }
    // Strides may count elements where the offset does not; then it does in memory that begins at the field.
    let field_only = array.of(key.py(), field.element.clone(), layout)?;
    let memory = object(key.py(), field_only.extent_memory(key.py())?)?;
    let layout = field_only.layout.from_lowest();
    let layout = layout.map_err(|error| invalid(&error))?;
    UsmArray::new(&memory, field.element.clone(), layout).map(Some)
}

/// The type of elements that other packages compute with, for a protocol that describes nothing else.
///
/// # Errors
/// A message for records, untyped bytes and elements that are not aligned.
pub(super) fn item_for_peer(array: &UsmArray) -> Result<ItemType, String> {
    match &array.element {
        ElementType::Record(record) => Err(format!(
            "the protocol has no records: export a field, one of {}, or copy_to_host()",
            dtype::field_names(record)
        )),
        ElementType::Item(item) => check_alignment(array).map(|()| *item),
    }
}

/// Refuses elements at addresses that compiled code does not expect, as in packed records.
///
/// # Errors
/// A message.
pub(super) fn check_alignment(array: &UsmArray) -> Result<(), String> {
    let alignment = array.element.alignment();
    let first = array.first(array.memory().address.number());
    if array.layout.elements() == 0 || first.is_multiple_of(alignment) {
        return Ok(());
    }
    Err(format!(
        "the elements of {} begin at an address that is no multiple of {alignment}, as in packed records or slices \
         at odd offsets, and device code needs one: use copy.copy(), or records with padding",
        dtype::name(&array.element)
    ))
}
