//! Imports of large packages at their first use, for which the interpreter's exit waits.
//!
//! Before Python 3.14 the exit ends other threads when they acquire the GIL next, by `pthread_exit`, which unwinds their stacks.
//! Frames of Rust below a Python function would abort the process instead. An import takes long and releases the GIL often,
//! so a daemon thread that is importing is where this happens.

use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyImportError, PyModuleNotFoundError, PyRuntimeError};
use pyo3::prelude::*;

use crate::interpreter::{ExitHook, intern};
use zeusm::process::{Local, Mutex};

/// The longest delay of the exit, for imports that wait for something.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The imports of one process; a fork's child has no thread that imports. The lock is held for a few instructions.
static IMPORTS: Local<Mutex<Imports>> = Local::new();

#[derive(Default)]
struct Imports {
    in_progress: usize,
    /// The thread in which the interpreter exits.
    exiting: Option<ThreadId>,
}

/// An import in progress.
struct Import(&'static Mutex<Imports>);

impl Import {
    /// # Errors
    /// `RuntimeError` in another thread than the one in which the interpreter exits.
    fn new() -> PyResult<Self> {
        let imports = IMPORTS.get_or_default();
        let mut state = imports.lock();
        let current = thread::current().id();
        if state.exiting.is_some_and(|thread| thread != current) {
            return Err(PyRuntimeError::new_err("the interpreter is exiting"));
        }
        state.in_progress += 1;
        drop(state);
        Ok(Self(imports))
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        self.0.lock().in_progress -= 1;
    }
}

/// Imports a package. The exit of the interpreter waits until it is imported.
pub(crate) fn import<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyModule>> {
    static EXIT_HOOK: ExitHook = ExitHook::new();
    EXIT_HOOK.register(|| wrap_pyfunction!(wait_for_imports, py))?;
    let _import = Import::new()?;
    py.import(name)
}

/// NumPy, which only some functions need; if it is missing, the error has the command to install it.
pub(crate) fn numpy(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    let numpy = py.import(intern!(py, "numpy"));
    numpy.map_err(|error| {
        if !error.is_instance_of::<PyModuleNotFoundError>(py) {
            return error;
        }
        missing(py, error, "this needs NumPy: pip install numpy")
    })
}

/// The error of an import that failed, with the way to make it succeed.
pub(crate) fn missing(py: Python<'_>, cause: PyErr, remedy: &str) -> PyErr {
    let message = format!("{remedy} ({})", cause.value(py));
    let error = match cause.is_instance_of::<PyModuleNotFoundError>(py) {
        true => PyModuleNotFoundError::new_err(message),
        false => PyImportError::new_err(message),
    };
    error.set_cause(py, Some(cause));
    error
}

/// Waits for the imports of other threads, with a timeout, and refuses new ones.
#[pyfunction]
fn wait_for_imports(py: Python<'_>) {
    py.detach(|| {
        let imports = IMPORTS.get_or_default();
        imports.lock().exiting = Some(thread::current().id());
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while imports.lock().in_progress > 0 && Instant::now() < deadline {
            thread::sleep(POLL_INTERVAL);
        }
    });
}
