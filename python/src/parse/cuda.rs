//! `__cuda_array_interface__` of any object: the dictionary's Python values as the fields of [`cuda`].

use pyo3::exceptions::PyNotImplementedError;
use pyo3::intern;
use pyo3::prelude::*;

use super::dictionary::Dictionary;
use super::record;
use crate::errors::{Explain, OrRaise};
use zeusm::cuda::{self, Interface};

/// Whether an object is in memory of CUDA.
pub(crate) fn is_cuda(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let name = intern!(object.py(), "__cuda_array_interface__");
    Ok(object.getattr_opt(name)?.is_some())
}

/// The interface of `object`, if it has one. An error of the property itself propagates.
///
/// # Errors
/// `ValueError` or `TypeError` with the field and its value; `NotImplementedError` for a masked array.
pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Option<Interface>> {
    let py = object.py();
    let name = intern!(py, "__cuda_array_interface__");
    let Some(value) = object.getattr_opt(name)? else {
        return Ok(None);
    };
    let fields = Dictionary::read("__cuda_array_interface__", value)?;
    if fields.get(intern!(py, "mask"))?.is_some() {
        return Err(PyNotImplementedError::new_err(
            "__cuda_array_interface__ has a 'mask', and masked arrays are not supported",
        ));
    }
    let data = fields.get(intern!(py, "data"))?;
    let data = data.map(|data| fields.pair(&data)).transpose()?;
    let typestr = fields.get(intern!(py, "typestr"))?;
    let typestr = typestr
        .as_ref()
        .map(|value| fields.string(value, "typestr"))
        .transpose()?;
    let shape = fields.integers(intern!(py, "shape"), "shape")?;
    let strides = fields.integers(intern!(py, "strides"), "strides")?;
    let descr = fields.get(intern!(py, "descr"))?;
    let read = Interface::read(&cuda::Fields {
        version: fields.integer(intern!(py, "version"), "version")?,
        pointer: data.map(|(pointer, _)| pointer),
        read_only: data.is_some_and(|(_, read_only)| read_only),
        typestr: typestr.as_deref(),
        descr: descr
            .as_ref()
            .map(record::read)
            .transpose()
            .explain(py, |error| fields.malformed(error.value(py)))?,
        shape: shape.as_deref(),
        strides: strides.as_deref(),
        stream: fields.integer(intern!(py, "stream"), "stream")?,
    });
    read.or_raise().map(Some)
}
