//! The buffer protocol of arrays (PEP 3118): a typed n-dimensional view for each consumer, with the fields that its flags
//! request.

// PyO3's trampolines for the buffer protocol call it without an unsafe block.
#![allow(unsafe_op_in_unsafe_fn)]

use std::ffi::{CString, c_int, c_void};
use std::ptr;

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::class::UsmArray;
use crate::errors::OrRaise;

#[pymethods]
impl UsmArray {
    /// Fills in a buffer.
    ///
    /// # Safety
    /// `view` must be a buffer structure to fill in.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        // SAFETY: the interpreter passes a buffer structure to fill in.
        unsafe { fill(&slf, view, flags) }
    }

    /// Ends the use of a buffer.
    ///
    /// # Safety
    /// `__getbuffer__` must have filled in `view`, which must not be released yet.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: the interpreter passes a view that `__getbuffer__` filled in, once.
        unsafe { release(view) }
    }
}

/// The arrays and strings that a `Py_buffer` points to; freed when the consumer releases it.
struct Description {
    shape: Vec<isize>,
    strides: Vec<isize>,
    format: CString,
}

/// The address in a view without elements, as some consumers treat null as an error.
static NOTHING: u128 = 0;

/// Fills in a `Py_buffer`.
///
/// # Errors
/// `TypeError` for device memory, `BufferError` where the array is not as writable or contiguous as requested.
///
/// # Safety
/// `view` must be a buffer structure to fill in.
unsafe fn fill(
    array: &Bound<'_, UsmArray>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    // SAFETY: the protocol requires a null `obj` when the request fails.
    unsafe { (*view).obj = ptr::null_mut() };
    let inner = array.get();
    check(inner, flags)?;
    let memory = inner
        .memory()
        .for_buffer(array.py(), inner.extent(), flags)?;
    let requests = |flag| flags & flag == flag;
    let layout = &inner.layout;
    let address = if layout.elements() == 0 {
        (&raw const NOTHING).expose_provenance()
    } else {
        inner.first(memory)
    };
    let mut description = Box::new(Description {
        shape: layout
            .shape()
            .iter()
            .map(|&size| size.cast_signed())
            .collect(),
        strides: layout.byte_strides(),
        format: CString::new(inner.element.format().or_raise()?)?,
    });
    let has_axes = layout.ndim() > 0;
    let (shape, strides) = (
        description.shape.as_mut_ptr(),
        description.strides.as_mut_ptr(),
    );
    let format = description.format.as_ptr().cast_mut();
    let null_unless = |wanted, pointer| if wanted { pointer } else { ptr::null_mut() };
    // SAFETY: `view` is to be filled in; it owns the array, which owns the memory; `internal` owns the rest, whose vectors do
    // not move with the box.
    unsafe {
        (*view).buf = ptr::with_exposed_provenance_mut::<c_void>(address);
        (*view).len = layout.nbytes().cast_signed();
        (*view).itemsize = layout.itemsize().cast_signed();
        (*view).readonly = c_int::from(inner.memory().terms.is_read_only());
        // Without PyBUF_ND the view is one-dimensional and has no shape.
        (*view).ndim = if requests(ffi::PyBUF_ND) {
            c_int::try_from(layout.ndim())?
        } else {
            1
        };
        (*view).shape = null_unless(has_axes && requests(ffi::PyBUF_ND), shape);
        (*view).strides = null_unless(has_axes && requests(ffi::PyBUF_STRIDES), strides);
        (*view).suboffsets = ptr::null_mut();
        (*view).format = if requests(ffi::PyBUF_FORMAT) {
            format
        } else {
            ptr::null_mut()
        };
        (*view).internal = Box::into_raw(description).cast();
        (*view).obj = array.clone().into_ptr();
    }
    Ok(())
}

/// Frees the data that [`fill`] allocated.
///
/// # Safety
/// `view` must be one that `fill` filled in; it is released once.
unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: `internal` is the box of `fill`.
    drop(unsafe { Box::from_raw((*view).internal.cast::<Description>()) });
}

fn check(array: &UsmArray, flags: c_int) -> PyResult<()> {
    let requests = |flag| flags & flag == flag;
    let layout = &array.layout;
    array
        .check_host_accessible()
        .map_err(PyTypeError::new_err)?;
    if requests(ffi::PyBUF_WRITABLE) && array.memory().terms.is_read_only() {
        return Err(PyBufferError::new_err("the array is read-only"));
    }
    let c_order = layout.is_c_contiguous();
    let f_order = layout.is_f_contiguous();
    let refusal = if requests(ffi::PyBUF_C_CONTIGUOUS) && !c_order {
        "C-contiguous"
    } else if requests(ffi::PyBUF_F_CONTIGUOUS) && !f_order {
        "Fortran-contiguous"
    } else if requests(ffi::PyBUF_ANY_CONTIGUOUS) && !c_order && !f_order {
        "contiguous"
    } else if !requests(ffi::PyBUF_STRIDES) && !c_order {
        "C-contiguous, which a consumer that takes no strides needs"
    } else if requests(ffi::PyBUF_FORMAT)
        && !requests(ffi::PyBUF_ND)
        && array.element.format().or_raise()? != "B"
    {
        "of unsigned bytes, which a consumer that takes a format but no shape needs"
    } else {
        return Ok(());
    };
    Err(PyBufferError::new_err(format!(
        "the array is not {refusal}"
    )))
}
