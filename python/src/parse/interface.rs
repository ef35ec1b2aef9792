//! `__sycl_usm_array_interface__` of any object: the dictionary's Python values as the fields of [`suai`].

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::HostBuffer;
use super::dictionary::Dictionary;
use crate::dpctl;
use crate::errors::{Explain, OrRaise};
use crate::interpreter::intern;
use zeusm::suai::{self, Fields, Flag, Interface};

const NAME: &str = "__sycl_usm_array_interface__";

/// The description of an object's memory.
pub(crate) struct Exported<'py> {
    pub(crate) interface: Interface,
    pub(crate) read_only: bool,
    pub(crate) syclobj: Bound<'py, PyAny>,
}

/// The interface of `object`, if it has one. An error of the property itself propagates.
pub(crate) fn dictionary<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = object.py();
    match object.getattr_opt(intern!(py, "__sycl_usm_array_interface__"))? {
        None => Ok(None),
        Some(value) => Ok(Some(Dictionary::read(NAME, value)?.into_inner())),
    }
}

/// Reads the dictionary that `object` exports.
///
/// # Errors
/// `ValueError` or `TypeError` with the field and its value, the classes that dpctl raises.
pub(crate) fn read<'py>(
    object: &Bound<'py, PyAny>,
    dictionary: &Bound<'py, PyDict>,
) -> PyResult<Exported<'py>> {
    let py = object.py();
    let fields = Dictionary::new(NAME, dictionary.clone());
    let common = fields.common()?;
    let from_buffer = !fields.has_key(intern!(py, "data"))?;
    let data = if from_buffer {
        Some(own_buffer(object)?)
    } else {
        common.data
    };
    // The specification uses both names, typedescr and, as NumPy, descr.
    let descr = match fields.record(intern!(py, "descr"))? {
        None => fields.record(intern!(py, "typedescr"))?,
        found => found,
    };
    let interface = Interface::read(&Fields {
        version: common.version,
        pointer: data.map(|(pointer, _)| pointer),
        flag: data.map(|(_, flag)| flag),
        typestr: common.typestr.as_deref(),
        descr,
        shape: common.shape.as_deref(),
        strides: common.strides.as_deref(),
        offset: fields.integer(intern!(py, "offset"), "offset")?,
    })
    .or_raise()?;
    let syclobj = fields
        .get(intern!(py, "syclobj"))?
        .ok_or(suai::Error::Missing { field: "syclobj" })
        .or_raise()?;
    let meaning = if !from_buffer && dpctl::is_memory(object)? {
        Flag::Writable
    } else {
        Flag::ReadOnly
    };
    Ok(Exported {
        read_only: interface.is_read_only(meaning),
        interface,
        syclobj,
    })
}

/// The address of the object's own buffer, and whether it is read-only: the values of a missing `data`.
///
/// Source: numba-dpex, "SYCL USM Array Interface"; the like in NumPy's array interface.
fn own_buffer(object: &Bound<'_, PyAny>) -> PyResult<(u64, bool)> {
    let buffer = HostBuffer::readable(object).explain(object.py(), |error| {
        malformed(format_args!(
            "there is no 'data', and no buffer in its place: {}",
            error.value(object.py())
        ))
    })?;
    Ok((buffer.address() as u64, buffer.is_read_only()))
}

pub(crate) fn malformed(what: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{NAME} is malformed: {what}"))
}
