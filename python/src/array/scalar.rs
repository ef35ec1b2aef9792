//! Arrays as Python objects: conversion to numbers, iteration and copies.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::imports;
use crate::interpreter::intern;

use super::class::UsmArray;
use super::plan::Plan;
use super::{host, make};
use crate::parse::dtype;

#[pymethods]
impl UsmArray {
    /// The truth value of the only element.
    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        number(slf)?.is_truthy()
    }

    /// The only element as an integer, if it is one.
    fn __index__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        number(slf)?.call_method0(intern!(slf.py(), "__index__"))
    }

    fn __int__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        number(slf)?.call_method0(intern!(slf.py(), "__int__"))
    }

    fn __float__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        number(slf)?.call_method0(intern!(slf.py(), "__float__"))
    }

    fn __complex__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        number(slf)?.call_method0(intern!(slf.py(), "__complex__"))
    }

    /// The elements of the first dimension, each an array.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().layout.ndim() == 0 {
            return Err(PyTypeError::new_err("iteration over a 0-d array"));
        }
        // SAFETY: the interpreter is attached; the function returns a new reference or null with an exception.
        unsafe { Bound::from_owned_ptr_or_err(slf.py(), ffi::PySeqIter_New(slf.as_ptr())) }
    }

    /// Raises `TypeError`: membership compares the elements.
    fn __contains__(&self, _item: &Bound<'_, PyAny>) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "a UsmArray does not compare elements: use copy_to_host(), or an array of dpnp or dpctl over it",
        ))
    }

    /// A copy of the same kind, on the same queue.
    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        make::copy(py, &Plan::copy_of(self), self)
    }

    /// The same as `copy.copy`, as elements are no objects.
    fn __deepcopy__(&self, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.__copy__(memo.py())
    }
}

/// A NumPy array that converts to a number as this array does. If the array has one element, the result has it, too. Else
/// it only has the shape, with which NumPy raises its error, and no element is copied.
fn number<'py>(array: &Bound<'py, UsmArray>) -> PyResult<Bound<'py, PyAny>> {
    let inner = array.get();
    if inner.layout.elements() == 1 {
        return host::read(array, None);
    }
    let py = array.py();
    let numpy = imports::numpy(py)?;
    let zero = numpy.call_method1(
        "zeros",
        (PyTuple::empty(py), dtype::object(py, &inner.element)?),
    )?;
    let shape = PyTuple::new(py, inner.layout.shape())?;
    numpy.call_method1("broadcast_to", (zero, shape))
}
