//! dpctl's Python side: its types, its default device, and its objects for our references.

use std::env;
use std::sync::Arc;

use once_cell::race::OnceBox;
use pyo3::exceptions::PyImportError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

use super::capsule;
use super::errors::{Explain, OrRaise, passes};
use super::place::Place;
use super::spot::Spot;
use super::syclobj::Target;
use zeusm::sycl::{Backend, DeviceRef};

/// dpctl's classes.
pub(super) struct Dpctl {
    module: Py<PyModule>,
    pub(super) queue: Py<PyType>,
    pub(super) context: Py<PyType>,
    pub(super) device: Py<PyType>,
    pub(super) event: Py<PyType>,
    /// The enumeration `event_status_type`.
    pub(super) status: Py<PyType>,
}

impl Dpctl {
    /// Imports dpctl, or says to install it.
    pub(super) fn get(py: Python<'_>) -> PyResult<&'static Self> {
        // No lock, as of `default_spot`: an import may let go of the GIL.
        static DPCTL: OnceBox<Dpctl> = OnceBox::new();
        DPCTL.get_or_try_init(|| {
            let module = py.import("dpctl").explain(py, |cause| {
                let error = PyImportError::new_err(format!(
                    "SYCL objects need dpctl: pip install dpctl ({})",
                    cause.value(py)
                ));
                error.set_cause(py, Some(cause));
                error
            })?;
            let class = |name| -> PyResult<Py<PyType>> {
                Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind())
            };
            Ok(Box::new(Self {
                queue: class("SyclQueue")?,
                context: class("SyclContext")?,
                device: class("SyclDevice")?,
                event: class("SyclEvent")?,
                status: class("event_status_type")?,
                module: module.unbind(),
            }))
        })
    }

    /// dpctl's one queue for a device, in the context that all of dpctl uses for that device.
    pub(super) fn cached_queue<'py>(
        &self,
        device: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.module
            .bind(device.py())
            .call_method1("get_device_cached_queue", (device,))
    }

    /// A `dpctl.SyclContext` of a place.
    pub(super) fn context_of<'py>(
        &self,
        py: Python<'py>,
        place: &Place,
    ) -> PyResult<Bound<'py, PyAny>> {
        let capsule = capsule::of(py, place.sycl()?)?;
        self.context.bind(py).call1((capsule,))
    }

    /// The `dpctl.SyclDevice` of a place.
    pub(super) fn device_of<'py>(
        &self,
        py: Python<'py>,
        place: &Place,
    ) -> PyResult<Bound<'py, PyAny>> {
        let context = self.context_of(py, place)?;
        for device in context.call_method0("get_devices")?.try_iter()? {
            let device = device?;
            if reference_of_device(&device)?.native().or_raise()? == place.device().handle() {
                return Ok(device);
            }
        }
        // A sub-device whose parent only is in the context: nearer than nothing is not true enough.
        Err(pyo3::exceptions::PyRuntimeError::new_err(format!(
            "{} is not among the devices of its SYCL context",
            place.device().name()
        )))
    }

    /// All root devices, in the order in which packages number them.
    pub(super) fn root_devices<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let devices = self.module.bind(py).call_method0("get_devices")?;
        devices.try_iter()?.collect()
    }

    /// A new `dpctl.SyclQueue` of a place.
    pub(super) fn queue_of<'py>(
        &self,
        py: Python<'py>,
        place: &Place,
    ) -> PyResult<Bound<'py, PyAny>> {
        let context = self.context_of(py, place)?;
        let device = self.device_of(py, place)?;
        self.queue.bind(py).call1((context, device))
    }
}

/// Whether the object is one of `dpctl.memory`, whose flag in the interface means "writable". The arrays of dpctl and dpnp
/// follow the interface's page.
pub(super) fn is_memory(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static BASE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = object.py();
    let base = match BASE.get(py) {
        Some(base) => base,
        None => {
            // Before somebody imports it, there is no such object.
            let modules = py
                .import(intern!(py, "sys"))?
                .getattr(intern!(py, "modules"))?;
            let modules = modules.cast_into::<PyDict>()?;
            let Some(module) = modules.get_item(intern!(py, "dpctl.memory._memory"))? else {
                return Ok(false);
            };
            let base = module.getattr("_Memory")?.cast_into::<PyType>()?;
            BASE.get_or_init(py, || base.unbind())
        }
    };
    object.is_instance(base.bind(py))
}

/// The address that dpctl's objects give of their reference.
pub(super) fn address(object: &Bound<'_, PyAny>) -> PyResult<*mut std::ffi::c_void> {
    let address: usize = object
        .call_method0(intern!(object.py(), "addressof_ref"))?
        .extract()?;
    Ok(std::ptr::with_exposed_provenance_mut(address))
}

/// A reference of our own to the device of a `dpctl.SyclDevice`.
pub(super) fn reference_of_device(device: &Bound<'_, PyAny>) -> PyResult<DeviceRef> {
    // SAFETY: dpctl's device object holds a valid reference for as long as it lives, and it does until the copy is made.
    unsafe { DeviceRef::copy_from_raw(address(device)?) }.or_raise()
}

/// Where memory goes by default: the context of dpctl's cached queue when its default device is a Level Zero device,
/// else a context of zeusm's own.
pub(super) fn default_spot(py: Python<'_>) -> PyResult<&'static Arc<Spot>> {
    // No lock: another thread may be about it when the process forks. Of two that are made at once, one is dropped.
    static DEFAULT: OnceBox<Arc<Spot>> = OnceBox::new();
    DEFAULT.get_or_try_init(|| {
        let spot = match default_queue(py)? {
            Ok(queue) => Target::of_queue(&queue)?.spot(py)?,
            Err(why) => Spot::new(py, py.detach(|| Place::without_sycl(why)).or_raise()?, None),
        };
        Ok(Box::new(spot))
    })
}

/// How a SYCL runtime comes to see Level Zero's devices.
pub(super) fn show_level_zero() -> String {
    const SELECTOR: &str = "ONEAPI_DEVICE_SELECTOR";
    match env::var(SELECTOR) {
        Ok(value) if !value.is_empty() => {
            format!("have {SELECTOR}, now {value:?}, choose level_zero; import zeusm before dpctl")
        }
        _ => format!("import zeusm before dpctl, and have {SELECTOR}, if set, choose level_zero"),
    }
}

fn no_device(error: &PyErr) -> String {
    format!(
        "dpctl has no default device ({error}): {}",
        show_level_zero()
    )
}

/// dpctl's cached queue of its default device, or why there is none on Level Zero.
fn default_queue(py: Python<'_>) -> PyResult<Result<Bound<'_, PyAny>, String>> {
    let dpctl = match Dpctl::get(py) {
        Ok(dpctl) => dpctl,
        Err(error) if passes(py, &error) => return Err(error),
        Err(error) => return Ok(Err(error.value(py).to_string())),
    };
    let device = match dpctl.device.bind(py).call0() {
        Ok(device) => device,
        Err(error) if passes(py, &error) => return Err(error),
        Err(error) => return Ok(Err(no_device(&error))),
    };
    let backend = reference_of_device(&device)?.backend();
    if backend != Backend::LevelZero {
        return Ok(Err(format!(
            "dpctl's default device, {}, is of the {backend} backend; give a Level Zero queue, or {}",
            device.getattr("filter_string")?,
            show_level_zero()
        )));
    }
    let queue = dpctl.cached_queue(&device)?;
    let obstacle = Place::obstacle(&Target::of_queue(&queue)?.context);
    Ok(match obstacle {
        Some(error) => Err(error.value(py).to_string()),
        None => Ok(queue),
    })
}
