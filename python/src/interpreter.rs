//! The interpreter: the check that it is the main one, its functions outside of the stable ABI, functions for its exit, and
//! interned strings.

use std::ffi::{CStr, c_int};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};

use once_cell::race::OnceBox;
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyString};
use zeusm::exit::Section;

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

/// A function of CPython that is not in the stable ABI, or that PyO3 declares otherwise; `None` for an interpreter without it.
///
/// # Safety
/// `F` must be the type that the interpreter's headers give the function.
pub(crate) unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    let process = libloading::os::unix::Library::this();
    // SAFETY: the caller guarantees the type, and the interpreter is never unloaded.
    unsafe { process.get(name) }.ok().map(|found| *found)
}

/// Whether the interpreter is being finalized: other threads than the main one never get the GIL again.
pub(crate) fn is_finalizing() -> bool {
    type IsFinalizing = extern "C" fn() -> c_int;
    static FUNCTION: OnceBox<Option<IsFinalizing>> = OnceBox::new();
    let function = FUNCTION.get_or_init(|| {
        let names = [c"Py_IsFinalizing", c"_Py_IsFinalizing"]; // Since Python 3.13, and before.
        // SAFETY: it is the type of both.
        let found = names
            .into_iter()
            .find_map(|name| unsafe { function::<IsFinalizing>(name) });
        Box::new(found)
    });
    function.is_some_and(|is_finalizing| is_finalizing() != 0)
}

/// Whether a function is registered for the exit of the interpreter.
pub(crate) struct ExitHook(AtomicBool);

impl ExitHook {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Has Python call a function without arguments when the interpreter exits. Concurrent first calls register it more than
    /// once, so that a fork's child never waits for a thread of its parent that was registering it.
    pub(crate) fn register<'py>(
        &self,
        function: impl FnOnce() -> PyResult<Bound<'py, PyCFunction>>,
    ) -> PyResult<()> {
        if self.0.load(Ordering::Relaxed) {
            return Ok(());
        }
        let function = function()?;
        let atexit = function.py().import("atexit")?;
        atexit.call_method1("register", (function,))?;
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }
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
    py.detach(|| {
        let _section = Section::enter();
        call()
    })
}

/// Acquires the GIL for `call`. The exit of the process does not wait for a thread that waits for the GIL.
pub(crate) fn attach<T>(call: impl FnOnce(Python<'_>) -> T) -> T {
    #[expect(clippy::disallowed_methods, reason = "it is outside of sections here")]
    Section::outside(|| Python::attach(call))
}

/// As [`attach`], or `None` if the interpreter is being finalized.
pub(crate) fn try_attach<T>(call: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    #[expect(clippy::disallowed_methods, reason = "it is outside of sections here")]
    Section::outside(|| Python::try_attach(call))
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

/// Has the exit of the process wait for threads that are in [`detach`], before the driver and SYCL destroy their objects.
pub(crate) fn wait_at_exit(py: Python<'_>) -> PyResult<()> {
    static EXIT_HOOK: ExitHook = ExitHook::new();
    EXIT_HOOK.register(|| wrap_pyfunction!(close, py))
}

/// Registered with Python, so that the libraries whose functions for the exit have to run later are loaded.
#[pyfunction]
fn close() {
    zeusm::exit::wait_at_exit();
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

/// The size in bytes of a Python object, without what it owns outside of it.
pub(crate) fn size_alone(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    let class = object.py().get_type::<PyAny>();
    class.call_method1("__sizeof__", (object,))?.extract()
}
