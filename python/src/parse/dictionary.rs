//! The dictionary of an array interface, whose errors name the interface, the field and the value.

use pyo3::exceptions::{PyNotImplementedError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::shown::Shown;
use super::{record, shape};
use crate::errors::Explain;
use crate::interpreter::intern;
use zeusm::suai::{self, Record};

/// The dictionary that an object's attribute returns.
pub(crate) struct Dictionary<'py> {
    interface: &'static str,
    fields: Bound<'py, PyDict>,
}

/// The fields that the interfaces have in common.
pub(crate) struct Common {
    pub(crate) version: Option<i64>,
    /// The address and the flag.
    pub(crate) data: Option<(u64, bool)>,
    pub(crate) typestr: Option<String>,
    pub(crate) shape: Option<Vec<i64>>,
    pub(crate) strides: Option<Vec<i64>>,
}

impl<'py> Dictionary<'py> {
    /// The value of the attribute `interface`.
    pub(crate) fn read(interface: &'static str, value: Bound<'py, PyAny>) -> PyResult<Self> {
        match value.cast_into::<PyDict>() {
            Ok(fields) => Ok(Self { interface, fields }),
            Err(error) => Err(malformed(
                interface,
                format!(
                    "it is a {}, not a dictionary",
                    error.into_inner().get_type().name()?
                ),
            )),
        }
    }

    /// The dictionary of the interface of that name.
    pub(crate) fn new(interface: &'static str, fields: Bound<'py, PyDict>) -> Self {
        Self { interface, fields }
    }

    pub(crate) fn into_inner(self) -> Bound<'py, PyDict> {
        self.fields
    }

    /// Reads the common fields.
    ///
    /// # Errors
    /// `ValueError` or `TypeError` with the field and its value; `NotImplementedError` for a masked array.
    pub(crate) fn common(&self) -> PyResult<Common> {
        let py = self.fields.py();
        if self.get(intern!(py, "mask"))?.is_some() {
            return Err(PyNotImplementedError::new_err(format!(
                "{} has a 'mask', and masked arrays are not supported",
                self.interface
            )));
        }
        let data = self.get(intern!(py, "data"))?;
        let typestr = self.get(intern!(py, "typestr"))?;
        Ok(Common {
            data: data.map(|data| self.pair(&data)).transpose()?,
            typestr: typestr
                .map(|value| self.string(&value, "typestr"))
                .transpose()?,
            shape: self.integers(intern!(py, "shape"), "shape")?,
            strides: self.integers(intern!(py, "strides"), "strides")?,
            version: self.integer(intern!(py, "version"), "version")?,
        })
    }

    /// A description of a record's fields, as in `descr`.
    pub(crate) fn record(&self, key: &Bound<'py, PyString>) -> PyResult<Option<Record>> {
        let descr = self.get(key)?;
        descr
            .as_ref()
            .map(record::read)
            .transpose()
            .explain(key.py(), |error| self.malformed(error.value(key.py())))
    }

    pub(crate) fn has_key(&self, key: &Bound<'py, PyString>) -> PyResult<bool> {
        self.fields.contains(key)
    }

    /// A value; `None` where there is none, or Python's `None`.
    pub(crate) fn get(&self, key: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.fields.get_item(key)?.filter(|value| !value.is_none()))
    }

    pub(crate) fn integer(
        &self,
        key: &Bound<'py, PyString>,
        field: &'static str,
    ) -> PyResult<Option<i64>> {
        let value = self.get(key)?;
        value
            .map(|value| self.as_integer(&value, field))
            .transpose()
    }

    fn integers(
        &self,
        key: &Bound<'py, PyString>,
        field: &'static str,
    ) -> PyResult<Option<Vec<i64>>> {
        let value = self.get(key)?;
        value
            .map(|value| self.as_integers(&value, field))
            .transpose()
    }

    /// `data`: the address and the flag.
    fn pair(&self, data: &Bound<'_, PyAny>) -> PyResult<(u64, bool)> {
        let pair = || self.malformed("'data' must be a pair of an address and a flag");
        let (address, flag) = match data.cast_exact::<PyTuple>() {
            Ok(tuple) if tuple.len() == 2 => (tuple.get_item(0)?, tuple.get_item(1)?),
            _ if data.len().explain(data.py(), |_| pair())? == 2 => {
                (data.get_item(0)?, data.get_item(1)?)
            }
            _ => return Err(pair()),
        };
        let pointer = address.extract::<u64>().explain(data.py(), |error| {
            self.out_of_range(&address, "data", error)
        })?;
        Ok((pointer, flag.is_truthy()?))
    }

    /// A string. dpctl accepts any object that NumPy accepts as a dtype; the interfaces allow a string only.
    fn string(&self, value: &Bound<'_, PyAny>, field: &'static str) -> PyResult<String> {
        let text = value.cast::<PyString>().map_err(|_| {
            self.malformed(format!("'{field}' must be a string, not {}", Shown(value)))
        })?;
        Ok(text.to_string_lossy().into_owned())
    }

    pub(crate) fn malformed(&self, what: impl std::fmt::Display) -> PyErr {
        malformed(self.interface, what)
    }

    fn as_integers(&self, value: &Bound<'_, PyAny>, field: &'static str) -> PyResult<Vec<i64>> {
        let sequence = || {
            self.malformed(format!(
                "'{field}' must be a sequence of integers, not {}",
                Shown(value)
            ))
        };
        if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            return tuple
                .iter_borrowed()
                .map(|item| self.as_integer(&item, field))
                .collect();
        }
        if value.is_instance_of::<PyString>() {
            return Err(sequence());
        }
        let items = value.try_iter().explain(value.py(), |_| sequence())?;
        let integer = |item: &Bound<'_, PyAny>| self.as_integer(item, field);
        shape::bounded(items, integer, |what| {
            self.malformed(format!("'{field}' {what}"))
        })
    }

    fn as_integer(&self, value: &Bound<'_, PyAny>, field: &'static str) -> PyResult<i64> {
        value
            .extract::<i64>()
            .explain(value.py(), |error| self.out_of_range(value, field, error))
    }

    /// An integer beyond 64 bits is a wrong value, anything that is no integer a wrong type.
    fn out_of_range(&self, value: &Bound<'_, PyAny>, field: &'static str, error: PyErr) -> PyErr {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            let value = Shown(value).to_string();
            self.malformed(suai::Error::OutOfRange { field, value })
        } else {
            PyTypeError::new_err(format!(
                "{} is malformed: '{field}' has {}, which is not an integer",
                self.interface,
                Shown(value)
            ))
        }
    }
}

fn malformed(interface: &str, what: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{interface} is malformed: {what}"))
}
