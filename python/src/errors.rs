//! Errors of the crate `zeusm` as the exceptions that dpctl's users catch.
#![expect(
    clippy::disallowed_types,
    reason = "`create_exception!` uses one for each class, which the import of the module initialises"
)]

use pyo3::exceptions::{
    PyBufferError, PyException, PyImportError, PyIndexError, PyMemoryError, PyRuntimeError,
    PyRuntimeWarning, PyTypeError, PyValueError,
};
use pyo3::{PyErr, PyResult, Python, create_exception};

use crate::interpreter::attach;
use crate::pins::Closed;
use crate::stacks;
use zeusm::{Error, arrow, cuda, dlpack, ipc, suai, sycl};

create_exception!(
    zeusm.memory,
    USMAllocationError,
    PyMemoryError,
    "USM could not be allocated; the message has the size, the kind, the device and Level Zero's answer.

Examples
--------
>>> import zeusm.memory as zm
>>> try:
...     zm.MemoryUSMDevice(1 << 62)
... except zm.USMAllocationError as error:
...     print(isinstance(error, MemoryError), str(1 << 62) in str(error))
True True"
);
create_exception!(
    zeusm.memory,
    IPCError,
    PyRuntimeError,
    "Memory or an event cannot be had from, or given to, another process, or that process has not completed an operation that was
waited for; the message says why.

Examples
--------
>>> import zeusm.memory as zm
>>> try:
...     zm.IPCMemoryHandle.from_bytes(b'nonsense')
... except zm.IPCError as error:
...     print(isinstance(error, RuntimeError))
True"
);
create_exception!(
    zeusm,
    LevelZeroError,
    PyRuntimeError,
    "Level Zero refused an operation, or cannot be had; the message says which and why.

Examples
--------
>>> import zeusm
>>> issubclass(zeusm.LevelZeroError, RuntimeError)
True"
);
create_exception!(
    zeusm,
    RuntimeSelectionWarning,
    PyRuntimeWarning,
    "The Level Zero runtime that serves is not the one a user may expect.

Examples
--------
>>> import warnings, zeusm
>>> warnings.simplefilter('error', zeusm.RuntimeSelectionWarning)  # For a program that must not run on a CPU."
);

/// Whether an error propagates unchanged, as it is unrelated to the object that is being read: `MemoryError`, and exceptions
/// that are not of class `Exception`, such as `KeyboardInterrupt`.
pub(crate) fn passes(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyMemoryError>(py) || !error.is_instance_of::<PyException>(py)
}

/// The error with its exception, which PyO3 makes at the first use. It releases the GIL for that, and cannot acquire it again
/// while the interpreter is being finalized (`__del__` at the exit): that would be a panic.
pub(crate) fn normalized(py: Python<'_>, error: PyErr) -> PyErr {
    error.restore(py);
    PyErr::fetch(py)
}

/// The error with a cause.
pub(crate) fn caused(py: Python<'_>, error: PyErr, cause: PyErr) -> PyErr {
    let error = normalized(py, error);
    error.set_cause(py, Some(normalized(py, cause)));
    error
}

/// Whether an error is not about an object that is converted: one that [passes], or that a function of Python raised. That is the
/// caller's own code, as `__index__`, or a signal's handler, which Python calls in it. The conversion's errors have no traceback.
pub(crate) fn is_of_caller(py: Python<'_>, error: &PyErr) -> bool {
    passes(py, error) || error.traceback(py).is_some()
}

/// Results whose error is replaced with one about the caller's argument.
pub(crate) trait Explain {
    /// Replaces an error, but not that [of the caller's own code](is_of_caller).
    fn explain(self, py: Python<'_>, explained: impl FnOnce(PyErr) -> PyErr) -> Self;
}

impl<T> Explain for PyResult<T> {
    fn explain(self, py: Python<'_>, explained: impl FnOnce(PyErr) -> PyErr) -> Self {
        self.map_err(|error| {
            let error = normalized(py, error);
            match is_of_caller(py, &error) {
                true => error,
                false => explained(error),
            }
        })
    }
}

/// Converts an error of the crate `zeusm` to a Python exception.
pub(crate) trait IntoException {
    fn into_exception(self) -> PyErr;
}

/// Converts results of the crate `zeusm` to Python results.
pub(crate) trait OrRaise<T> {
    /// Converts the error to an exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: IntoException> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(E::into_exception)
    }
}

impl From<Closed> for PyErr {
    fn from(_: Closed) -> Self {
        PyValueError::new_err("the memory was closed")
    }
}

impl IntoException for Error {
    fn into_exception(self) -> PyErr {
        let mut message = format!("{self}");
        match self {
            error if error.is_of_producer() => IPCError::new_err(message),
            Error::Allocation { cause, holders, .. } => {
                let holders = attach(|py| stacks::describe(py, &holders));
                // What to do remains the last line.
                let last = cause.remedy().and_then(|_| message.rfind('\n'));
                message.insert_str(last.unwrap_or(message.len()), &holders);
                let failure = USMAllocationError::new_err(message);
                match raised(*cause) {
                    None => failure,
                    Some(raised) => attach(|py| {
                        if passes(py, &raised) {
                            return raised;
                        }
                        caused(py, failure, raised)
                    }),
                }
            }
            Error::InPlace { .. } => USMAllocationError::new_err(message),
            Error::Alignment { .. }
            | Error::Length { .. }
            | Error::UnknownPointer { .. }
            | Error::InvalidCpuDevices { .. }
            | Error::NotSuspendable
            | Error::InvalidVariable { .. } => PyValueError::new_err(message),
            _ => LevelZeroError::new_err(message),
        }
    }
}

impl IntoException for ipc::Error {
    fn into_exception(self) -> PyErr {
        match self {
            ipc::Error::LevelZero(error) => error.into_exception(),
            ipc::Error::Range { .. } | ipc::Error::NothingToShare { .. } => {
                PyValueError::new_err(format!("{self}"))
            }
            _ => IPCError::new_err(format!("{self}")),
        }
    }
}

/// The exception of a failure callback, if that is the root cause.
fn raised(error: Error) -> Option<PyErr> {
    match error {
        Error::Pool { cause, .. } => raised(*cause),
        Error::Callback(error) => error.downcast::<PyErr>().ok().map(|error| *error),
        _ => None,
    }
}

impl IntoException for suai::Error {
    fn into_exception(self) -> PyErr {
        PyValueError::new_err(format!("{self}"))
    }
}

impl IntoException for sycl::Error {
    fn into_exception(self) -> PyErr {
        let message = format!("{self}");
        match self {
            sycl::Error::NoDpctl { .. } => PyImportError::new_err(message),
            sycl::Error::NullReference { .. } | sycl::Error::Backend { .. } => {
                PyValueError::new_err(message)
            }
            _ => PyRuntimeError::new_err(message),
        }
    }
}

impl IntoException for suai::ViewError {
    fn into_exception(self) -> PyErr {
        let message = format!("{self}");
        match self {
            Self::IndexCount { .. } | Self::OutOfBounds { .. } => PyIndexError::new_err(message),
            _ => PyValueError::new_err(message),
        }
    }
}

impl IntoException for cuda::Error {
    fn into_exception(self) -> PyErr {
        match self {
            Self::LevelZero(error) => error.into_exception(),
            Self::Version { .. } | Self::Stream { .. } | Self::Field(_) => {
                PyValueError::new_err(format!("__cuda_array_interface__ is malformed: {self}"))
            }
            Self::Pointer { .. } => PyValueError::new_err(format!("{self}")),
            _ => PyRuntimeError::new_err(format!("{self}")),
        }
    }
}

impl IntoException for arrow::Error {
    fn into_exception(self) -> PyErr {
        let message = format!("Arrow array: {self}");
        match self {
            Self::Item(_) | Self::Format(_) => PyTypeError::new_err(message),
            _ => PyValueError::new_err(message),
        }
    }
}

impl IntoException for dlpack::Error {
    fn into_exception(self) -> PyErr {
        PyBufferError::new_err(format!("DLPack tensor: {self}"))
    }
}
