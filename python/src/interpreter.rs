//! The interpreter: the check that it is the main one, its functions outside of the stable ABI, and interned strings.

use std::ffi::{CStr, c_int, c_void};
use std::mem;

use once_cell::race::OnceBox;
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use zeusm::exit;

use crate::library;

/// Whether the interpreter is free-threaded. Without a GIL another thread may submit an operation between a check of those in
/// flight and the access after it.
pub(crate) const FREE_THREADED: bool = cfg!(Py_GIL_DISABLED);

/// The number of the main interpreter.
const MAIN: i64 = 0;

/// Refuses sub-interpreters. Threads that call back into Python attach to the main interpreter, so they would deadlock with a
/// sub-interpreter that waits for them, and the module's static references belong to one interpreter.
///
/// # Errors
/// `ImportError` in a sub-interpreter.
pub(crate) fn expect_main() -> PyResult<()> {
    // SAFETY: the module is being imported, so this thread is attached to an interpreter, which has a number.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if number == MAIN {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "zeusm supports the main interpreter only, and this is a sub-interpreter",
    ))
}

/// A function of CPython that is not in the stable ABI, or that PyO3 declares otherwise, by the first of its names that the
/// interpreter has; `None` for an interpreter without it.
///
/// # Safety
/// `F` must be the type that the interpreter's headers give the function.
pub(crate) unsafe fn function<F: Copy>(names: &[&CStr]) -> Option<F> {
    let library = library::of_the_interpreter()?;
    // SAFETY: the caller guarantees the type, and the interpreter is never unloaded.
    let found = |name: &&CStr| unsafe { library.get(*name) }.ok().map(|found| *found);
    names.iter().find_map(found)
}

/// Whether the interpreter is being finalized: other threads than the main one never get the GIL again.
pub(crate) fn is_finalizing() -> bool {
    type IsFinalizing = extern "C" fn() -> c_int;
    static FUNCTION: OnceBox<Option<IsFinalizing>> = OnceBox::new();
    let function = FUNCTION.get_or_init(|| {
        let names = [c"Py_IsFinalizing", c"_Py_IsFinalizing"]; // Since Python 3.13, and before.
        // SAFETY: it is the type of both.
        Box::new(unsafe { function(&names) })
    });
    function.is_some_and(|is_finalizing| is_finalizing() != 0)
}

/// Whether other threads of Python run than this one. `sys._current_frames` is written in C, so that no signal's handler runs in
/// it.
pub(crate) fn has_other_threads(py: Python<'_>) -> PyResult<bool> {
    // At the end of the interpreter, where the module may be gone, no other thread runs.
    let Ok(sys) = py.import(intern!(py, "sys")) else {
        return Ok(false);
    };
    let frames = sys.call_method0(intern!(py, "_current_frames"))?;
    Ok(frames.len()? > 1)
}

/// Releases the GIL for `call`, and acquires it again. The exit of the process waits for calls of the driver in it.
#[inline(never)]
pub(crate) fn detach<T: Send>(py: Python<'_>, call: impl FnOnce() -> T + Send) -> T {
    #[expect(clippy::disallowed_methods, reason = "the section is here")]
    py.detach(|| exit::inside(call))
}

/// Whether this thread is attached to the interpreter; `false` also where the interpreter does not tell. `PyGILState_Check` answers
/// `true` for every thread once there was a sub-interpreter.
#[inline]
pub(crate) fn is_attached() -> bool {
    type Current = unsafe extern "C" fn() -> *mut ffi::PyThreadState;
    static CURRENT: OnceBox<Option<Current>> = OnceBox::new();
    let current = CURRENT.get_or_init(|| {
        let names = [
            c"PyThreadState_GetUnchecked",
            c"_PyThreadState_UncheckedGet",
        ]; // Since Python 3.13, and before.
        // SAFETY: it is the type of both.
        Box::new(unsafe { function(&names) })
    });
    current.is_some_and(|current| {
        // SAFETY: any thread may call both; the states are compared only.
        let (own, current) = unsafe { (ffi::PyGILState_GetThisThreadState(), current()) };
        !own.is_null() && own == current
    })
}

/// As [`detach`], from any thread.
pub(crate) fn detached<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    if is_attached() {
        attach(|py| detach(py, call))
    } else {
        exit::inside(call)
    }
}

/// Acquires the GIL for `call`. The exit of the process does not wait for a thread that waits for the GIL.
pub(crate) fn attach<T>(call: impl FnOnce(Python<'_>) -> T) -> T {
    #[expect(clippy::disallowed_methods, reason = "it is outside of sections here")]
    exit::outside(|| Python::attach(|py| regained(py, call)))
}

/// As [`attach`], or `None` if the interpreter is being finalized.
pub(crate) fn try_attach<T>(call: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    #[expect(clippy::disallowed_methods, reason = "it is outside of sections here")]
    exit::outside(|| Python::try_attach(|py| regained(py, call)))
}

/// Makes `call` with the GIL, which foreign code between frames of PyO3 and this one may have released, as PyTorch does in a deleter
/// of DLPack: PyO3 takes the thread for attached by a count of its own.
fn regained<T>(py: Python<'_>, call: impl FnOnce(Python<'_>) -> T) -> T {
    struct Ensured(ffi::PyGILState_STATE);

    impl Drop for Ensured {
        fn drop(&mut self) {
            // SAFETY: it is what this thread's call returned.
            unsafe { ffi::PyGILState_Release(self.0) };
        }
    }

    // SAFETY: the interpreter is initialised, as PyO3 has checked, or attached to before.
    let _ensured = (!is_attached()).then(|| Ensured(unsafe { ffi::PyGILState_Ensure() }));
    call(py)
}

/// Python objects whose drop attaches the thread to the interpreter. The drop may run on any thread, and may run arbitrary
/// Python code.
pub(crate) struct Attached<T>(Option<T>);

impl<T> Attached<T> {
    pub(crate) fn new(objects: T) -> Self {
        Self(Some(objects))
    }
}

impl<T> Drop for Attached<T> {
    fn drop(&mut self) {
        if try_attach(|_| drop(self.0.take())).is_none() {
            // After the finalization of the interpreter its objects are leaked.
            mem::forget(self.0.take());
        }
    }
}

/// A string that is interned on first use, for [`intern`].
///
/// PyO3's type of this purpose has a lock whose owner may release the GIL: a fork's child would wait for ever for a thread of
/// its parent that was interning the same string.
pub(crate) struct Interned {
    text: &'static str,
    string: OnceBox<Py<PyString>>,
}

impl Interned {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self {
            text,
            string: OnceBox::new(),
        }
    }

    pub(crate) fn get<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        let intern = || Box::new(PyString::intern(py, self.text).unbind());
        self.string.get_or_init(intern).bind(py)
    }
}

/// The interned Python string of a literal.
macro_rules! intern {
    ($py:expr, $text:literal) => {{
        static STRING: $crate::interpreter::Interned = $crate::interpreter::Interned::new($text);
        STRING.get($py)
    }};
}
pub(crate) use intern;

/// The pointer in a capsule, if the object is one with that name. The thread must be attached.
pub(crate) fn capsule_pointer(object: *mut ffi::PyObject, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the object is alive; its class and name are checked before the pointer is read.
    unsafe {
        if ffi::PyCapsule_IsValid(object, name.as_ptr()) == 0 {
            return None;
        }
        let pointer = ffi::PyCapsule_GetPointer(object, name.as_ptr());
        (!pointer.is_null()).then_some(pointer)
    }
}

/// The size in bytes of a Python object, without what it owns outside of it.
pub(crate) fn size_alone(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    let class = object.py().get_type::<PyAny>();
    class.call_method1("__sizeof__", (object,))?.extract()
}
