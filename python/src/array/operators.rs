//! The operators, which are refused with the name of what computes.

// PyO3's trampolines of methods that a macro names call them without an unsafe block.
#![allow(unsafe_op_in_unsafe_fn)]

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};

use super::class::UsmArray;

macro_rules! refused {
    ($($operator:ident)*; $($power:ident)*; $($unary:ident)*) => {
        #[pymethods]
        impl UsmArray {
            $(fn $operator<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                not_computed(other)
            })*

            $(fn $power<'py>(
                &self,
                other: &Bound<'py, PyAny>,
                _modulo: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                not_computed(other)
            })*

            $(fn $unary(&self) -> PyResult<Self> {
                Err(no_arithmetic())
            })*
        }
    };
}

refused!(
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__
    __mod__ __rmod__ __divmod__ __rdivmod__ __matmul__ __rmatmul__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__
    __lshift__ __rlshift__ __rshift__ __rrshift__;
    __pow__ __rpow__;
    __neg__ __pos__ __abs__ __invert__
);

/// Other objects than numbers and arrays of zeusm decide themselves: NumPy's arrays take memory that the host can access.
fn not_computed<'py>(other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let is_number = other.is_exact_instance_of::<PyInt>()
        || other.is_exact_instance_of::<PyFloat>()
        || other.is_exact_instance_of::<PyComplex>()
        || other.is_exact_instance_of::<PyBool>();
    if is_number || other.is_instance_of::<UsmArray>() {
        return Err(no_arithmetic());
    }
    Ok(other.py().NotImplemented().into_bound(other.py()))
}

fn no_arithmetic() -> PyErr {
    PyTypeError::new_err(
        "a UsmArray has no arithmetic: dpnp.from_dlpack(array) is an array over the same memory that has, and copy_to_host() a \
         copy for NumPy",
    )
}
