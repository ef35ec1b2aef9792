//! `__sycl_usm_array_interface__` of any object: the dictionary's Python values as the fields of [`suai`].

use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::dictionary::Dictionary;
use super::{HostBuffer, record};
use crate::dpctl;
use crate::errors::{Explain, OrRaise};
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
    if fields.get(intern!(py, "mask"))?.is_some() {
        return Err(PyNotImplementedError::new_err(
            "__sycl_usm_array_interface__ has a 'mask', and masked arrays are not supported",
        ));
    }
    let data = fields.get(intern!(py, "data"))?;
    let from_buffer = !fields.has_key(intern!(py, "data"))?;
    let (pointer, flag) = match data {
        None if from_buffer => own_buffer(object)?,
        None => (None, None),
        Some(data) => fields
            .pair(&data)
            .map(|(pointer, flag)| (Some(pointer), Some(flag)))?,
    };
    let typestr = fields.get(intern!(py, "typestr"))?;
    let typestr = typestr
        .as_ref()
        .map(|value| fields.string(value, "typestr"))
        .transpose()?;
    let shape = fields.integers(intern!(py, "shape"), "shape")?;
    let strides = fields.integers(intern!(py, "strides"), "strides")?;
    // The specification uses both names, typedescr and, as NumPy, descr.
    let descr = match fields.get(intern!(py, "descr"))? {
        None => fields.get(intern!(py, "typedescr"))?,
        found => found,
    };
    let interface = Interface::read(&Fields {
        version: fields.integer(intern!(py, "version"), "version")?,
        pointer,
        flag,
        typestr: typestr.as_deref(),
        descr: descr
            .as_ref()
            .map(record::read)
            .transpose()
            .explain(py, |error| malformed(error.value(py)))?,
        shape: shape.as_deref(),
        strides: strides.as_deref(),
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
fn own_buffer(object: &Bound<'_, PyAny>) -> PyResult<(Option<u64>, Option<bool>)> {
    let buffer = HostBuffer::readable(object).explain(object.py(), |error| {
        malformed(format_args!(
            "there is no 'data', and no buffer in its place: {}",
            error.value(object.py())
        ))
    })?;
    let address = buffer.address() as u64;
    Ok((Some(address), Some(buffer.is_read_only())))
}

pub(crate) fn malformed(what: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{NAME} is malformed: {what}"))
}
