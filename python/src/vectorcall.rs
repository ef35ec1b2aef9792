//! Calls of a class without a tuple and a dictionary of the arguments.
//!
//! A call of a class makes both, unless the class has a function for the vectorcall protocol (PEP 590). The field for it is not
//! in the stable ABI before Python 3.14, nor in PyO3, so its offset is found in the class `list`, which has one.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};

use crate::interpreter::function;

/// A function for the protocol: of the class, the arguments, their number and flags, and the tuple of the keywords.
pub(crate) type Vectorcall = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    usize,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// The interpreter's function that finds the function of an object.
type Find = unsafe extern "C" fn(*mut ffi::PyObject) -> Option<Vectorcall>;

/// The function of an object, if it has one and the interpreter can find it.
pub(crate) fn of(object: &Bound<'_, PyAny>) -> Option<Vectorcall> {
    // SAFETY: the type is that of the interpreter's headers, and the thread is attached.
    unsafe { function::<Find>(c"PyVectorcall_Function")?(object.as_ptr()) }
}

/// Has calls of exactly this class, and of no subclass, call `vectorcall`. Without effect in an interpreter in which the field
/// cannot be found; the calls then take longer.
pub(crate) fn set(class: &Bound<'_, PyType>, vectorcall: Vectorcall) {
    let Some(offset) = offset(class.py()) else {
        return;
    };
    // SAFETY: objects of the class `type`, such as `list` and `class`, have the field at this offset. The GIL is held.
    unsafe {
        let field = class.as_ptr().byte_add(offset);
        let field = field.cast::<Option<Vectorcall>>();
        let before = field.replace(Some(vectorcall));
        if address(of(class)) != address(Some(vectorcall)) {
            field.write(before);
        }
    }
}

/// The offset in bytes of the field in objects of the class `type`.
fn offset(py: Python<'_>) -> Option<usize> {
    let list = py.get_type::<PyList>();
    let known = address(Some(of(&list)?));
    // The interpreter has read the field, so the search ends there at the latest. No other field has the same function.
    let is_field = |word: &usize| {
        // SAFETY: it is at most the offset of the field, so within the object.
        unsafe { list.as_ptr().cast::<usize>().add(*word).read() == known }
    };
    let word = (0..).find(is_field)?;
    Some(word * size_of::<usize>())
}

fn address(function: Option<Vectorcall>) -> usize {
    function.map_or(0, |function| function as usize)
}
