//! `__cuda_array_interface__` of any object: the dictionary's Python values as the fields of [`cuda`].

use pyo3::prelude::*;

use super::dictionary::Dictionary;
use crate::errors::OrRaise;
use crate::interpreter::intern;
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
    let common = fields.common()?;
    let read = Interface::read(&cuda::Fields {
        version: common.version,
        pointer: common.data.map(|(pointer, _)| pointer),
        read_only: common.data.is_some_and(|(_, read_only)| read_only),
        typestr: common.typestr.as_deref(),
        descr: fields.record(intern!(py, "descr"))?,
        shape: common.shape.as_deref(),
        strides: common.strides.as_deref(),
        stream: fields.integer(intern!(py, "stream"), "stream")?,
    });
    read.or_raise().map(Some)
}
