//! `__sycl_usm_array_interface__` and `__cuda_array_interface__` of any object: the dictionary's Python values as the fields of
//! [`suai`] and [`cuda`]. Errors name the interface, the field and the value.

use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::host_buffer::HostBuffer;
use super::{dtype, integer_or, shape};
use crate::dpctl;
use crate::errors::{Explain, OrRaise};
use crate::interpreter::intern;
use crate::shown::{class_name, naming};
use zeusm::suai::{self, Record};
use zeusm::{cuda, suai::Interface};

const USM: &str = "__sycl_usm_array_interface__";
const CUDA: &str = "__cuda_array_interface__";

/// The description of an object's memory.
pub(crate) struct Exported<'py> {
    pub(crate) interface: Interface,
    pub(crate) read_only: bool,
    pub(crate) syclobj: Bound<'py, PyAny>,
}

/// The interface of USM of `object`, if it has one. An error of the property itself propagates.
pub(crate) fn dictionary<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let value = object.getattr_opt(intern!(object.py(), "__sycl_usm_array_interface__"))?;
    value.map(|value| as_dictionary(USM, value)).transpose()
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
    let fields = Fields {
        interface: USM,
        fields: dictionary,
    };
    let mut found = fields.common()?;
    let from_buffer = !dictionary.contains(intern!(py, "data"))?;
    if from_buffer {
        let (pointer, flag) = own_buffer(object)?;
        (found.pointer, found.flag) = (Some(pointer), Some(flag));
    }
    // The specification uses both names, typedescr and, as NumPy, descr.
    if found.descr.is_none() {
        found.descr = fields.record(intern!(py, "typedescr"))?;
    }
    found.offset = fields.integer(intern!(py, "offset"))?;
    let interface = Interface::read(&found).map_err(malformed)?;
    let syclobj = fields
        .get(intern!(py, "syclobj"))?
        .ok_or_else(|| malformed(suai::Error::Missing("syclobj")))?;
    let means_writable = !from_buffer && dpctl::is_memory(object)?;
    Ok(Exported {
        read_only: interface.flag.is_some_and(|flag| flag != means_writable),
        interface,
        syclobj,
    })
}

/// The interface of CUDA of `object`, if it has one. An error of the property itself propagates.
///
/// # Errors
/// `ValueError` or `TypeError` with the field and its value; `NotImplementedError` for a masked array.
pub(crate) fn read_cuda(object: &Bound<'_, PyAny>) -> PyResult<Option<cuda::Interface>> {
    let py = object.py();
    let Some(value) = object.getattr_opt(intern!(py, "__cuda_array_interface__"))? else {
        return Ok(None);
    };
    let fields = Fields {
        interface: CUDA,
        fields: &as_dictionary(CUDA, value)?,
    };
    let found = fields.common()?;
    let stream = fields.integer(intern!(py, "stream"))?;
    let read = cuda::Interface::read(&found, stream);
    read.or_raise().map(Some)
}

/// The error of a dictionary whose fields contradict each other, or what they describe.
pub(crate) fn malformed(what: impl std::fmt::Display) -> PyErr {
    malformed_in(USM, what)
}

fn malformed_in(interface: &str, what: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{interface} is malformed: {what}"))
}

fn as_dictionary<'py>(interface: &str, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    value.cast_into::<PyDict>().map_err(|error| {
        let class = class_name(&error.into_inner());
        malformed_in(interface, format_args!("it is a {class}, not a dictionary"))
    })
}

/// The address of the object's own buffer, and whether it is read-only: the values of a missing `data`.
///
/// Source: numba-dpex, "SYCL USM Array Interface"; the like in NumPy's array interface.
fn own_buffer(object: &Bound<'_, PyAny>) -> PyResult<(u64, bool)> {
    let buffer = HostBuffer::readable(object).explain(object.py(), |error| {
        naming(error.value(object.py()), |reason| {
            malformed(format_args!(
                "there is no 'data', and no buffer in its place: {reason}"
            ))
        })
    })?;
    Ok((buffer.address() as u64, buffer.is_read_only()))
}

/// The dictionary of an interface.
struct Fields<'a, 'py> {
    interface: &'static str,
    fields: &'a Bound<'py, PyDict>,
}

impl<'py> Fields<'_, 'py> {
    /// Reads the fields that the interfaces have in common.
    ///
    /// # Errors
    /// `ValueError` or `TypeError` with the field and its value; `NotImplementedError` for a masked array.
    fn common(&self) -> PyResult<suai::Fields> {
        let py = self.fields.py();
        if self.get(intern!(py, "mask"))?.is_some() {
            return Err(PyNotImplementedError::new_err(format!(
                "{} has a 'mask', and masked arrays are not supported",
                self.interface
            )));
        }
        let data = self.get(intern!(py, "data"))?;
        let data = data.map(|data| self.pair(&data)).transpose()?;
        let typestr = self.get(intern!(py, "typestr"))?;
        Ok(suai::Fields {
            pointer: data.map(|(pointer, _)| pointer),
            flag: data.map(|(_, flag)| flag),
            typestr: typestr.map(|value| self.typestr(&value)).transpose()?,
            shape: self.integers(intern!(py, "shape"))?,
            strides: self.integers(intern!(py, "strides"))?,
            version: self.integer(intern!(py, "version"))?,
            descr: self.record(intern!(py, "descr"))?,
            offset: None,
        })
    }

    /// A value; `None` where there is none, or Python's `None`.
    fn get(&self, key: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.fields.get_item(key)?.filter(|value| !value.is_none()))
    }

    /// A description of a record's fields, as in `descr`.
    fn record(&self, key: &Bound<'py, PyString>) -> PyResult<Option<Record>> {
        let record = self.get(key)?.as_ref().map(dtype::record).transpose();
        record.explain(key.py(), |error| {
            naming(error.value(key.py()), |reason| self.malformed(reason))
        })
    }

    fn integer(&self, key: &Bound<'py, PyString>) -> PyResult<Option<i64>> {
        let value = self.get(key)?;
        value.map(|value| self.as_integer(&value, key)).transpose()
    }

    fn as_integer<'a, T>(
        &self,
        value: &'a Bound<'py, PyAny>,
        key: &Bound<'py, PyString>,
    ) -> PyResult<T>
    where
        T: FromPyObject<'a, 'py, Error = PyErr>,
    {
        let field = key.to_string_lossy();
        // An integer beyond 64 bits is a wrong value, anything that is no integer a wrong type.
        integer_or(value, |value, is_integer| match is_integer {
            true => self.malformed(format_args!("'{field}' is {value}, which is out of range")),
            false => PyTypeError::new_err(format!(
                "{} is malformed: '{field}' has {value}, which is not an integer",
                self.interface
            )),
        })
    }

    fn integers(&self, key: &Bound<'py, PyString>) -> PyResult<Option<Vec<i64>>> {
        let Some(value) = self.get(key)? else {
            return Ok(None);
        };
        let integer = |item: &Bound<'py, PyAny>| self.as_integer(item, key);
        if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            let integers = tuple.iter_borrowed().map(|item| integer(&item));
            return integers.collect::<PyResult<_>>().map(Some);
        }
        let field = key.to_string_lossy();
        let no_sequence = || {
            naming(&value, |value| {
                self.malformed(format_args!(
                    "'{field}' must be a sequence of integers, not {value}"
                ))
            })
        };
        if value.is_instance_of::<PyString>() {
            return Err(no_sequence());
        }
        let items = value.try_iter().explain(value.py(), |_| no_sequence())?;
        let refused = |what| self.malformed(format_args!("'{field}' {what}"));
        shape::bounded(items, integer, refused).map(Some)
    }

    /// `data`: the address and the flag.
    fn pair(&self, data: &Bound<'py, PyAny>) -> PyResult<(u64, bool)> {
        let pair = || self.malformed("'data' must be a pair of an address and a flag");
        let (address, flag) = match data.cast_exact::<PyTuple>() {
            Ok(tuple) if tuple.len() == 2 => (tuple.get_item(0)?, tuple.get_item(1)?),
            _ if data.len().explain(data.py(), |_| pair())? == 2 => {
                (data.get_item(0)?, data.get_item(1)?)
            }
            _ => return Err(pair()),
        };
        let pointer = self.as_integer(&address, intern!(data.py(), "data"))?;
        Ok((pointer, flag.is_truthy()?))
    }

    /// A string. dpctl accepts any object that NumPy accepts as a dtype; the interfaces allow a string only.
    fn typestr(&self, value: &Bound<'_, PyAny>) -> PyResult<String> {
        match value.cast::<PyString>() {
            Ok(text) => Ok(text.to_string_lossy().into_owned()),
            Err(_) => Err(naming(value, |value| {
                self.malformed(format_args!("'typestr' must be a string, not {value}"))
            })),
        }
    }

    fn malformed(&self, what: impl std::fmt::Display) -> PyErr {
        malformed_in(self.interface, what)
    }
}
