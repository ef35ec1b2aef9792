//! Calls of Python code in which the exit of the interpreter may end this thread; it parks for ever instead.
//!
//! Before Python 3.14 a thread that asks for the GIL after the exit has begun ends by `pthread_exit`, which unwinds its stack.
//! PyO3 declares the C API as functions that do not unwind, so Rust aborts the process if the call is below one of its frames.
//! NumPy releases the GIL in each copy, an import does so often, and Python code between any two instructions.
//!
//! The functions here declare the C API as one that may unwind, and the thread parks in their frame. It does not hold the GIL
//! then, and the exit does not wait for it. Python 3.14 does the same, and PyO3 where it acquires the GIL itself.

use std::ffi::c_int;
use std::{mem, thread};

use once_cell::race::OnceBox;
use pyo3::exceptions::PySystemError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::interpreter::function;

type Object = *mut ffi::PyObject;

/// Functions of the C API, found at run time: the linker would merge a declaration with PyO3's, and so lose that it may unwind.
struct Functions {
    call: unsafe extern "C-unwind" fn(Object, Object, Object) -> Object,
    set_item: unsafe extern "C-unwind" fn(Object, Object, Object) -> c_int,
    import: unsafe extern "C-unwind" fn(Object) -> Object,
}

impl Functions {
    fn get() -> PyResult<&'static Self> {
        static FUNCTIONS: OnceBox<Functions> = OnceBox::new();
        let found = FUNCTIONS.get_or_try_init(|| {
            // SAFETY: the types are those of the interpreter's headers.
            let found = unsafe {
                Self {
                    call: function(c"PyObject_Call").ok_or(())?,
                    set_item: function(c"PyObject_SetItem").ok_or(())?,
                    import: function(c"PyImport_Import").ok_or(())?,
                }
            };
            Ok::<_, ()>(Box::new(found))
        });
        found.map_err(|()| PySystemError::new_err("the interpreter does not show its C API"))
    }
}

/// Parks the thread when it is dropped, which only an unwinding does.
struct Parks;

impl Drop for Parks {
    fn drop(&mut self) {
        loop {
            thread::park();
        }
    }
}

/// Calls a function that may unwind.
fn parking<T>(call: impl FnOnce() -> T) -> T {
    let parks = Parks;
    let result = call();
    mem::forget(parks);
    result
}

/// A tuple of arguments.
pub(crate) trait IntoArguments<'py>:
    IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>
{
}

impl<'py, T> IntoArguments<'py> for T where
    T: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>
{
}

/// Imports a module.
pub(crate) fn import<'py>(name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyModule>> {
    let import = Functions::get()?.import;
    // SAFETY: the thread is attached, and the function takes any string; it returns a new reference, or null with an exception.
    let module = unsafe {
        let module = parking(|| import(name.as_ptr()));
        Bound::from_owned_ptr_or_err(name.py(), module)
    };
    Ok(module?.cast_into()?)
}

/// Calls a method.
pub(crate) fn call_method<'py>(
    object: &Bound<'py, PyAny>,
    name: &str,
    arguments: impl IntoArguments<'py>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    call(&object.getattr(name)?, arguments, keywords)
}

/// Calls a function.
pub(crate) fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: impl IntoArguments<'py>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, call) = (function.py(), Functions::get()?.call);
    let arguments = arguments.into_pyobject(py)?;
    let keywords = keywords.map_or(std::ptr::null_mut(), Bound::as_ptr);
    // SAFETY: the thread is attached, and the function takes any object, a tuple, and a dictionary or null; it returns a new
    // reference, or null with an exception.
    unsafe {
        let result = parking(|| call(function.as_ptr(), arguments.as_ptr(), keywords));
        Bound::from_owned_ptr_or_err(py, result)
    }
}

/// Assigns an item.
pub(crate) fn set_item(
    object: &Bound<'_, PyAny>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let set_item = Functions::get()?.set_item;
    // SAFETY: the thread is attached, and the function takes any objects.
    let result = parking(|| unsafe { set_item(object.as_ptr(), key.as_ptr(), value.as_ptr()) });
    match result {
        0 => Ok(()),
        _ => Err(PyErr::fetch(object.py())),
    }
}
