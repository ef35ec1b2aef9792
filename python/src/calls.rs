//! Calls of the memory classes without a tuple and a dictionary of the arguments, in a build for one version of Python.
//!
//! Most calls have one argument, and at most a queue beside it: to match these with the names of five parameters would take a
//! tenth of the time of an allocation. All other calls take the way of those without this file.

use std::ptr;
use std::slice;

use once_cell::race::OnceBox;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::construct::{Options, construct_then};
use crate::interpreter::intern;
use crate::memory::{MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, PyMemory, kind_of, object};
use crate::slots;

/// Memory of the class's kind, given the argument and the queue that most calls have.
#[pyfunction]
#[pyo3(signature = (class, other, queue, /))]
fn make<'py>(
    class: &Bound<'py, PyType>,
    other: &Bound<'py, PyAny>,
    queue: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyMemory>> {
    let kind = kind_of(class).ok_or_else(|| PyTypeError::new_err("a class of memory is needed"))?;
    let options = Options {
        queue,
        ..Options::default()
    };
    construct_then(kind, other, &options, |memory| object(other.py(), memory))
}

/// The function above as an object, and how it is called.
struct Make {
    object: Py<PyAny>,
    call: ffi::vectorcallfunc,
    /// `type.__dict__["__call__"]`, which all other calls take.
    call_of_type: Py<PyAny>,
}

static MAKE: OnceBox<Make> = OnceBox::new();

/// Has calls of the classes take the short way.
pub(crate) fn shorten(py: Python<'_>) -> PyResult<()> {
    let object = wrap_pyfunction!(make, py)?.into_any();
    // SAFETY: the thread is attached.
    let Some(call) = (unsafe { ffi::PyVectorcall_Function(object.as_ptr()) }) else {
        return Ok(()); // No version of CPython has such functions of C.
    };
    let of_type = py.get_type::<PyType>().getattr("__dict__")?;
    let call_of_type = of_type.get_item("__call__")?.unbind();
    MAKE.get_or_init(|| {
        Box::new(Make {
            object: object.unbind(),
            call,
            call_of_type,
        })
    });
    for class in [
        py.get_type::<MemoryUSMShared>(),
        py.get_type::<MemoryUSMHost>(),
        py.get_type::<MemoryUSMDevice>(),
    ] {
        // SAFETY: it is for these classes, which only the import of the module has so far.
        unsafe { slots::set_vectorcall(&class, call_class) };
    }
    Ok(())
}

/// Calls a class.
///
/// # Safety
/// For the interpreter's calls, with `count` arguments and the names of the keywords, whose values follow the arguments.
unsafe extern "C" fn call_class(
    class: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls this in an attached thread, with valid objects, which the call keeps alive.
    unsafe {
        let py = Python::assume_attached();
        let count = ffi::PyVectorcall_NARGS(count).unsigned_abs();
        if let Some(queue) = queue_alone(py, arguments, count, keywords)
            && let Some(make) = MAKE.get()
        {
            let arguments = [class, *arguments, queue];
            let count = arguments.len();
            return (make.call)(
                make.object.as_ptr(),
                arguments.as_ptr(),
                count,
                ptr::null_mut(),
            );
        }
        call_with_tuple(class, arguments, count, keywords)
    }
}

/// The queue of a call with one argument and at most that keyword, or None; nothing for all other calls.
///
/// # Safety
/// As for [`call_class`].
unsafe fn queue_alone(
    py: Python<'_>,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    keywords: *mut ffi::PyObject,
) -> Option<*mut ffi::PyObject> {
    // SAFETY: as for this function; the keywords are null or a tuple. The interpreter interns names that a program spells.
    unsafe {
        if count != 1 {
            None
        } else if keywords.is_null() {
            Some(ffi::Py_None())
        } else {
            let name = intern!(py, "queue").as_ptr();
            let is_queue =
                ffi::PyTuple_GET_SIZE(keywords) == 1 && ffi::PyTuple_GET_ITEM(keywords, 0) == name;
            is_queue.then(|| *arguments.add(1))
        }
    }
}

/// Calls a class as the interpreter does without a function for the protocol: by the slot of the classes' class, `type`.
///
/// # Safety
/// As for [`call_class`].
#[cold]
unsafe fn call_with_tuple(
    class: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as for this function; the tuple of names is null or has a length. The pointer may be null without arguments.
    unsafe {
        let names = match keywords.is_null() {
            true => 0,
            false => ffi::PyTuple_GET_SIZE(keywords).unsigned_abs(),
        };
        let given = match count + names {
            0 => &[],
            all => slice::from_raw_parts(arguments, all),
        };
        let all = [&[class], given].concat();
        let Some(make) = MAKE.get() else {
            return ptr::null_mut(); // It is there before the classes have this function.
        };
        let call = make.call_of_type.as_ptr();
        ffi::PyObject_Vectorcall(call, all.as_ptr(), count + 1, keywords)
    }
}
