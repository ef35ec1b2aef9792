//! The Level Zero runtime in use, as a Python object.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::dpctl::show_level_zero;
use crate::errors::{OrRaise, RuntimeSelectionWarning};
use zeusm::Error;
use zeusm::runtime::{RUNTIME_VARIABLE, Runtime};

/// The Level Zero runtime of this process.
///
/// Examples
/// --------
/// >>> import zeusm
/// >>> isinstance(zeusm.runtime(), zeusm.Runtime)
/// True
#[pyclass(name = "Runtime", module = "zeusm", frozen)]
pub(crate) struct PyRuntime(&'static Runtime);

#[pymethods]
impl PyRuntime {
    /// The kind of the runtime: 'system', 'cpu' or 'custom'.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> zeusm.runtime().kind in ("system", "cpu", "custom")
    /// True
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind().name()
    }

    /// The reason why this runtime was selected, in one sentence.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> len(zeusm.runtime().reason) > 0
    /// True
    #[getter]
    fn reason(&self) -> &'static str {
        self.0.reason()
    }

    /// The path of the library.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> zeusm.runtime().path.is_absolute()
    /// True
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.path()
    }

    /// The names of the devices, in Level Zero's order.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> len(zeusm.runtime().device_names) > 0
    /// True
    #[getter]
    fn device_names(&self) -> Vec<&'static str> {
        self.0
            .devices()
            .iter()
            .map(|device| device.name())
            .collect()
    }

    fn __repr__(&self) -> String {
        format!(
            "<zeusm runtime {:?} of {}: {}>",
            self.kind(),
            self.path().display(),
            self.reason()
        )
    }
}

/// The Level Zero runtime of this process.
///
/// Returns
/// -------
/// Runtime
///     Its kind, path and devices, and the reason why it was selected.
///
/// Raises
/// ------
/// LevelZeroError
///     When no runtime can be used.
///
/// Examples
/// --------
/// >>> import zeusm
/// >>> zeusm.runtime().kind in ("system", "cpu", "custom")
/// True
#[pyfunction]
pub(crate) fn runtime(py: Python<'_>) -> PyResult<PyRuntime> {
    Ok(PyRuntime(py.detach(Runtime::get).or_raise()?))
}

/// Selects the runtime at import, so that a SYCL runtime loads the same one later, and warns about an unexpected selection.
///
/// A failure is a warning here: the first use of the runtime raises the error.
#[pyfunction(name = "_start")]
pub(crate) fn start(py: Python<'_>) -> PyResult<()> {
    let warning = match py.detach(Runtime::get) {
        Err(error) => Some(format!("no Level Zero runtime: {error}")),
        Ok(runtime) => match (runtime.warning(), runtime.other_library()) {
            (Some(text), _) => Some(text.to_owned()),
            (None, Some(theirs)) => Some(
                Error::OtherRuntime {
                    ours: runtime.path(),
                    theirs: Some(theirs),
                    variable: RUNTIME_VARIABLE,
                }
                .to_string(),
            ),
            (None, None) => came_too_late(py)?,
        },
    };
    let Some(text) = warning else { return Ok(()) };
    let category = py.get_type::<RuntimeSelectionWarning>();
    let keywords = PyDict::new(py);
    keywords.set_item("stacklevel", 2)?;
    py.import("warnings")?
        .call_method("warn", (text, category), Some(&keywords))?;
    Ok(())
}

/// The warning that dpctl was imported first: dpctl enumerates the devices once, at its import, and zeusm's runtime was not
/// loaded then.
fn came_too_late(py: Python<'_>) -> PyResult<Option<String>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let dpctl = modules.call_method1("get", ("dpctl",))?;
    if dpctl.is_none() {
        return Ok(None);
    }
    let keywords = PyDict::new(py);
    keywords.set_item("backend", "level_zero")?;
    let devices = dpctl
        .call_method("get_num_devices", (), Some(&keywords))?
        .extract::<usize>()?;
    Ok((devices == 0).then(|| {
        format!(
            "dpctl looked for devices before zeusm was imported, or was not to show them, and does not see zeusm's \
             Level Zero device: {}",
            show_level_zero()
        )
    }))
}
