//! `__sycl_usm_array_interface__` of any object: the dictionary's Python values as the fields of [`suai`].

use std::borrow::Cow;

use pyo3::exceptions::{PyNotImplementedError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::{HostBuffer, record};
use crate::dpctl;
use crate::errors::{Explain, IntoException, OrRaise};
use zeusm::suai::{self, Fields, Flag, Interface};

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
        Some(value) => match value.cast_into::<PyDict>() {
            Ok(dictionary) => Ok(Some(dictionary)),
            Err(error) => Err(malformed(format!(
                "it is a {}, not a dictionary",
                error.into_inner().get_type().name()?
            ))),
        },
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
    let get = |key: &Bound<'py, PyString>| -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(dictionary.get_item(key)?.filter(|value| !value.is_none()))
    };
    let integer_field = |key: &Bound<'py, PyString>, name| -> PyResult<Option<i64>> {
        get(key)?.map(|value| integer(&value, name)).transpose()
    };
    if get(intern!(py, "mask"))?.is_some() {
        return Err(PyNotImplementedError::new_err(
            "__sycl_usm_array_interface__ has a 'mask', and masked arrays are not supported",
        ));
    }
    let data = dictionary.get_item(intern!(py, "data"))?;
    let from_buffer = data.is_none();
    let (pointer, flag) = match data.filter(|data| !data.is_none()) {
        None if from_buffer => own_buffer(object)?,
        None => (None, None),
        Some(data) => data_pair(&data).map(|(pointer, flag)| (Some(pointer), Some(flag)))?,
    };
    let typestr = get(intern!(py, "typestr"))?;
    let typestr = typestr.as_ref().map(type_string).transpose()?;
    let shape = get(intern!(py, "shape"))?
        .map(|value| integers(&value, "shape"))
        .transpose()?;
    let strides = get(intern!(py, "strides"))?
        .map(|value| integers(&value, "strides"))
        .transpose()?;
    // The specification uses both names, typedescr and, as NumPy, descr.
    let descr = match get(intern!(py, "descr"))? {
        None => get(intern!(py, "typedescr"))?,
        found => found,
    };
    let interface = Interface::read(&Fields {
        version: integer_field(intern!(py, "version"), "version")?,
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
        offset: integer_field(intern!(py, "offset"), "offset")?,
    })
    .or_raise()?;
    let syclobj = get(intern!(py, "syclobj"))?
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

/// `data`: the address and the flag.
fn data_pair(data: &Bound<'_, PyAny>) -> PyResult<(u64, bool)> {
    let pair = || malformed("'data' must be a pair of an address and a flag");
    let (address, flag) = match data.cast_exact::<PyTuple>() {
        Ok(tuple) if tuple.len() == 2 => (tuple.get_item(0)?, tuple.get_item(1)?),
        _ if data.len().explain(data.py(), |_| pair())? == 2 => {
            (data.get_item(0)?, data.get_item(1)?)
        }
        _ => return Err(pair()),
    };
    let pointer = address
        .extract::<u64>()
        .explain(data.py(), |error| out_of_range(&address, "data", error))?;
    Ok((pointer, flag.is_truthy()?))
}

/// dpctl accepts any object that NumPy accepts as a dtype; the interface allows a string only.
fn type_string<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, str>> {
    let text = value
        .cast::<PyString>()
        .map_err(|_| malformed(format!("'typestr' must be a string, not {value}")))?;
    Ok(text.to_string_lossy())
}

fn integers(value: &Bound<'_, PyAny>, field: &'static str) -> PyResult<Vec<i64>> {
    let sequence = || {
        malformed(format!(
            "'{field}' must be a sequence of integers, not {value}"
        ))
    };
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return tuple
            .iter_borrowed()
            .map(|item| integer(&item, field))
            .collect();
    }
    if value.is_instance_of::<PyString>() {
        return Err(sequence());
    }
    value
        .try_iter()
        .explain(value.py(), |_| sequence())?
        .map(|item| integer(&item?, field))
        .collect()
}

fn integer(value: &Bound<'_, PyAny>, field: &'static str) -> PyResult<i64> {
    value
        .extract::<i64>()
        .explain(value.py(), |error| out_of_range(value, field, error))
}

/// An integer beyond 64 bits is a wrong value, anything that is no integer a wrong type.
fn out_of_range(value: &Bound<'_, PyAny>, field: &'static str, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(value.py()) {
        suai::Error::OutOfRange {
            field,
            value: value.to_string(),
        }
        .into_exception()
    } else {
        PyTypeError::new_err(format!(
            "__sycl_usm_array_interface__ is malformed: '{field}' has {value}, which is not an integer"
        ))
    }
}

pub(crate) fn malformed(what: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("__sycl_usm_array_interface__ is malformed: {what}"))
}
