//! Pickling: the bytes, the alignment, the root device by its filter string, and the kind.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyTuple};

use super::base::PyMemory;
use super::classes::class;
use crate::dpctl::Dpctl;
use crate::errors::passes;
use crate::interpreter::intern;
use crate::parse::{self, pickle};

/// The version of the pickled state.
const VERSION: u32 = 1;

/// The first protocol with out-of-band buffers.
const OUT_OF_BAND_PROTOCOL: i32 = 5;

#[pymethods]
impl PyMemory {
    /// As that of `object`, this calls a `__reduce__` that the class of the object overrides.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: i32) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let name = intern!(py, "__reduce__");
        let own = slf.get_type().getattr(name)?;
        if !own.is(py.get_type::<Self>().getattr(name)?) {
            return slf.call_method0(name);
        }
        Self::reduced(slf, protocol)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::reduced(slf, pickle::PLAIN_PROTOCOL)
    }
}

impl PyMemory {
    /// The function that unpickles, and its arguments.
    fn reduced<'py>(slf: &Bound<'py, Self>, protocol: i32) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let memory = slf.get();
        let content = if protocol < OUT_OF_BAND_PROTOCOL {
            slf.call_method0("tobytes")?
        } else {
            // The memory itself if the host can access it: with out-of-band buffers, no byte is copied.
            let bytes = if memory.kind.is_host_accessible() {
                slf.as_any().clone()
            } else {
                slf.call_method0("copy_to_host")?
            };
            py.import("pickle")?
                .call_method1("PickleBuffer", (bytes,))?
        };
        let rebuild = py.import("zeusm.memory")?.getattr("_from_pickle")?;
        // Without SYCL there is no filter string; a sub-device has that of its root device.
        let device = slf
            .getattr("sycl_device")
            .and_then(Dpctl::root_of)
            .and_then(|device| device.getattr("filter_string"))
            .map(Some)
            .or_else(|error| unless_it_passes(py, error, || Ok(None)))?;
        let state = (
            VERSION,
            content,
            memory.alignment(),
            device,
            memory.kind.name(),
        );
        Ok((rebuild, state).into_pyobject(py)?.into_any())
    }
}

/// The content, the alignment, the device and the kind.
type State<'py> = (
    Bound<'py, PyAny>,
    usize,
    Option<Bound<'py, PyAny>>,
    PyBackedStr,
);

/// Unpickles: allocates memory with these bytes, on the named device if it exists, else on the default device.
#[pyfunction(name = "_from_pickle")]
#[pyo3(signature = (version, *state))]
pub(crate) fn from_pickle<'py>(
    version: u32,
    state: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    pickle::check_version("a memory object", version, VERSION)?;
    let py = state.py();
    let (content, alignment, device, usm_type): State<'_> = state.extract()?;
    let kind = parse::usm_kind(&usm_type)?;
    let size = py
        .import("builtins")?
        .call_method1("memoryview", (&content,))?
        .getattr("nbytes")?;
    let class = class(py, kind);
    let make = |queue: Option<Bound<'py, PyAny>>| {
        let keywords = PyDict::new(py);
        keywords.set_item("alignment", alignment)?;
        keywords.set_item("queue", queue)?;
        class.call((&size,), Some(&keywords))
    };
    let memory = match device {
        // The device may not exist on this machine. Any other error occurs again without it.
        Some(_) => make(device).or_else(|error| unless_it_passes(py, error, || make(None))),
        None => make(None),
    }?;
    memory.call_method1("copy_from_host", (content,))?;
    Ok(memory)
}

/// The alternative after an error, unless the error [passes].
fn unless_it_passes<T>(
    py: Python<'_>,
    error: PyErr,
    otherwise: impl FnOnce() -> PyResult<T>,
) -> PyResult<T> {
    if passes(py, &error) {
        Err(error)
    } else {
        otherwise()
    }
}
