//! The Level Zero runtime in use, as a Python object.

use std::ffi::CString;
use std::path::PathBuf;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::dpctl::show_level_zero;
use crate::errors::{OrRaise, RuntimeSelectionWarning};
use crate::getters::getters;
use crate::in_flight;
use crate::interpreter::detach;
use crate::parse;
use crate::resolve;
use crate::shown;
use zeusm::Error;
use zeusm::runtime::{CpuDevices, RUNTIME_VARIABLE, Runtime, RuntimeKind};

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
    fn __repr__(&self) -> String {
        format!(
            "<zeusm runtime {:?} of {}: {}>",
            self.kind(),
            self.path().display(),
            self.reason()
        )
    }

    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let cells = [
            ("Kind", self.kind().to_owned()),
            ("Devices", self.device_names().join("\n")),
            ("Reason", self.reason().to_owned()),
        ];
        shown::table(py, "zeusm runtime", &cells, "")
    }
}

getters! {
    PyRuntime,
    ">>> import zeusm";

    /// The kind of the runtime: 'system', 'cpu' or 'custom'.
    "zeusm.runtime().kind in (\"system\", \"cpu\", \"custom\")" => "True"
    fn kind(&self) -> &'static str {
        self.0.kind().name()
    }

    /// The reason why this runtime was selected, in one sentence.
    "len(zeusm.runtime().reason) > 0" => "True"
    fn reason(&self) -> &'static str {
        self.0.reason()
    }

    /// The path of the library.
    "zeusm.runtime().path.is_absolute()" => "True"
    fn path(&self) -> PathBuf {
        self.0.path()
    }

    /// The names of the devices, in Level Zero's order.
    "len(zeusm.runtime().device_names) > 0" => "True"
    fn device_names(&self) -> Vec<&'static str> {
        self.0
            .devices()
            .iter()
            .map(|device| device.name())
            .collect()
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
    Ok(PyRuntime(detach(py, Runtime::get).or_raise()?))
}

/// Choose how many GPUs the CPU runtime presents, to test a program for several GPUs without any.
///
/// It has to be called before a device is used, and before dpctl is imported. The environment variables
/// ZEUSM_CPU_DEVICES, ZEUSM_CPU_TILES and ZEUSM_CPU_PEER_ACCESS, which it overrides, say the same for a process
/// and its children.
///
/// Parameters
/// ----------
/// count : int
///     The number of GPUs, up to 32, which share the machine's processors and memory.
/// tiles : int, default 1
///     The number of tiles of each GPU, up to 16: its sub-devices, if there are several.
/// peer_access : bool, default True
///     Whether each device can access the memory of the others.
/// cpu : bool, default False
///     Whether ``level_zero:cpu:0`` is listed after them: the same machine as a device of type CPU, for which oneMKL and
///     oneDAL have code for processors.
///
/// Raises
/// ------
/// LevelZeroError
///     When other devices have been listed already, or the CPU runtime is not in use.
/// ValueError
///     For numbers out of range.
///
/// Examples
/// --------
/// >>> import os, subprocess, sys
/// >>> program = '''
/// ... import zeusm
/// ... zeusm.set_cpu_devices(2)
/// ... import dpctl
/// ... print([device.filter_string for device in dpctl.get_devices(device_type="gpu")])
/// ... '''
/// >>> environment = os.environ | {"ZEUSM_RUNTIME": "cpu"}
/// >>> print(subprocess.check_output([sys.executable, "-c", program], env=environment, text=True), end="")
/// ['level_zero:gpu:0', 'level_zero:gpu:1']
#[pyfunction]
#[pyo3(signature = (count, *, tiles=None, peer_access=true, cpu=false), text_signature = "(count, *, tiles=1, peer_access=True, cpu=False)")]
pub(crate) fn set_cpu_devices(
    py: Python<'_>,
    count: &Bound<'_, PyAny>,
    tiles: Option<&Bound<'_, PyAny>>,
    peer_access: bool,
    cpu: bool,
) -> PyResult<()> {
    let number = |name, value| {
        let number = parse::number(name, value)?.unwrap_or(1);
        PyResult::Ok(u32::try_from(number).unwrap_or(u32::MAX))
    };
    let devices = CpuDevices {
        gpus: number("count", Some(count))?,
        cpu,
        tiles: number("tiles", tiles)?,
        peer_access,
    };
    detach(py, || Runtime::set_cpu_devices(devices)).or_raise()
}

/// Selects the runtime at import, so that a SYCL runtime loads the same one later, and warns about an unexpected selection.
///
/// The devices are listed later, so that the program can choose them. A failure is a warning here: the first use of the
/// runtime raises the error.
#[pyfunction(name = "_start")]
pub(crate) fn start(py: Python<'_>) -> PyResult<()> {
    py.import("atexit")?
        .call_method1("register", (wrap_pyfunction!(close, py)?,))?;
    let selected = detach(py, Runtime::select);
    if matches!(&selected, Ok(runtime) if runtime.kind() != RuntimeKind::System) {
        announce_forks(py)?;
    }
    for name in Runtime::unknown_variables() {
        let text = CString::new(format!(
            "zeusm has no variable {name}: docs/reference/variables.md lists them"
        ))?;
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 2)?;
    }
    let warning = match selected {
        Err(error) => Some(format!("no Level Zero runtime: {error}")),
        Ok(runtime) => match (runtime.warning(), runtime.other_library()) {
            (Some(text), _) => Some(text.to_owned()),
            (None, Some(theirs)) => Some(format!(
                "{}",
                Error::OtherRuntime {
                    ours: runtime.path(),
                    theirs: Some(theirs),
                    variable: RUNTIME_VARIABLE,
                }
            )),
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

/// Registered with Python for the exit of the interpreter. At last it has the exit of the process wait for calls of the driver
/// that other threads make: the libraries whose functions for the exit have to run later are loaded by now.
#[pyfunction]
fn close(py: Python<'_>) -> PyResult<()> {
    let drained = in_flight::drain(py);
    if drained.is_ok() {
        resolve::forget();
    }
    zeusm::exit::wait_at_exit();
    drained
}

/// Announces forks whose child runs Python code (`os.fork`, `multiprocessing`, the `preexec_fn` of `subprocess`): Python calls its
/// hooks before these only. Other forks of `subprocess`, which dpctl has fork where it would call `vfork`, do not wait for
/// kernels then.
fn announce_forks(py: Python<'_>) -> PyResult<()> {
    let keywords = PyDict::new(py);
    keywords.set_item("before", wrap_pyfunction!(announce_fork, py)?)?;
    // Windows has no forks.
    let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? else {
        return Ok(());
    };
    register.call((), Some(&keywords))?;
    // Last, as each fork would count as another program's without the hook. A runtime that was chosen by its path may not have
    // the function.
    let _ = Runtime::require_announced_forks();
    Ok(())
}

/// Registered with Python, which calls it in the thread that forks.
#[pyfunction]
fn announce_fork() {
    let _ = Runtime::announce_fork();
}

/// The warning that dpctl was imported first: dpctl enumerates the devices once, at its import, and zeusm's runtime was not
/// loaded then.
fn came_too_late(py: Python<'_>) -> PyResult<Option<String>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let dpctl = modules.call_method1("get", ("dpctl",))?;
    // Another thread may be importing dpctl, which does not have the function yet.
    let Some(count) = dpctl.getattr_opt("get_num_devices")? else {
        return Ok(None);
    };
    let keywords = PyDict::new(py);
    keywords.set_item("backend", "level_zero")?;
    let devices: usize = count.call((), Some(&keywords))?.extract()?;
    Ok((devices == 0).then(|| {
        format!(
            "dpctl looked for devices before zeusm was imported, or was not to show them, and does not see zeusm's \
             Level Zero device: {}",
            show_level_zero()
        )
    }))
}
