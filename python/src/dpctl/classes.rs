//! dpctl's classes, and its Python objects for SYCL references.

use once_cell::race::OnceBox;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::errors::OrRaise;
use crate::imports;
use crate::interpreter::intern;
use zeusm::sycl::{DeviceRef, QueueRef};

use zeusm_process::Owned;

/// The most filter strings that are remembered.
const MOST_NAMED: usize = 32;

/// dpctl's classes.
pub(crate) struct Dpctl {
    module: Py<PyModule>,
    pub(crate) queue: Py<PyType>,
    pub(crate) context: Py<PyType>,
    pub(crate) device: Py<PyType>,
    pub(crate) event: Py<PyType>,
    /// The enumeration `event_status_type`.
    pub(crate) status: Py<PyType>,
    /// The devices by the filter strings that were used, as SYCL compares a string with each device.
    named: Py<PyDict>,
    /// Knows the process that imported it, whose threads SYCL may need.
    origin: Owned<()>,
}

impl Dpctl {
    /// Imports dpctl; the error has the command to install it.
    pub(crate) fn get(py: Python<'_>) -> PyResult<&'static Self> {
        // No lock is used: the import may release the GIL, so another thread could hold the lock at a fork.
        static DPCTL: OnceBox<Dpctl> = OnceBox::new();
        DPCTL.get_or_try_init(|| {
            let module = imports::dpctl(py)?;
            let class = |name| -> PyResult<Py<PyType>> {
                // A module that is being imported may not have it yet.
                let class = module.getattr(name);
                let class = class.map_err(|error| imports::no_dpctl(py, error))?;
                Ok(class.cast_into::<PyType>()?.unbind())
            };
            Ok(Box::new(Self {
                queue: class("SyclQueue")?,
                context: class("SyclContext")?,
                device: class("SyclDevice")?,
                event: class("SyclEvent")?,
                status: class("event_status_type")?,
                module: module.unbind(),
                named: PyDict::new(py).unbind(),
                origin: Owned::new(()),
            }))
        })
    }

    /// dpctl's default device, or dpctl's error if there is no device.
    ///
    /// # Errors
    /// Any other error of the call.
    pub(crate) fn default_device<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Result<Bound<'py, PyAny>, PyErr>> {
        let no_device = self.module.bind(py).getattr("SyclDeviceCreationError")?;
        match self.device.bind(py).call0() {
            Err(error) if !error.matches(py, no_device)? => Err(error),
            answer => Ok(answer),
        }
    }

    /// Whether a parent of this process imported it, before a fork.
    pub(crate) fn is_inherited(&self) -> bool {
        self.origin.is_inherited()
    }

    /// dpctl's cached queue for a device or its filter string, in dpctl's default context of that device, or for a pair of a
    /// context and a device.
    pub(crate) fn cached_queue<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let key = match key.cast_exact::<PyString>() {
            Ok(filter) => self.named(filter)?,
            Err(_) => key.clone(),
        };
        let module = self.module.bind(key.py());
        module.call_method1("get_device_cached_queue", (key,))
    }

    /// The `dpctl.SyclDevice` of a filter string.
    fn named<'py>(&self, filter: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let named = self.named.bind(filter.py());
        if let Some(device) = named.get_item(filter)? {
            return Ok(device);
        }
        let device = self.device.bind(filter.py()).call1((filter,))?;
        if named.len() < MOST_NAMED {
            named.set_item(filter, &device)?;
        }
        Ok(device)
    }

    /// All root devices, in the order that packages use for device numbers.
    pub(crate) fn root_devices<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let devices = self.module.bind(py).call_method0("get_devices")?;
        devices.try_iter()?.collect()
    }
}

/// Whether the object is a memory object of `dpctl.memory`. The flag in the interface of these means "writable"; the arrays
/// of dpctl and dpnp follow the interface's specification, where it means "read-only".
pub(crate) fn is_memory(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static BASE: OnceBox<Py<PyType>> = OnceBox::new();
    let py = object.py();
    let base = match BASE.get() {
        Some(base) => base,
        None => {
            // No such object exists before the module is imported.
            let modules = py
                .import(intern!(py, "sys"))?
                .getattr(intern!(py, "modules"))?;
            let modules = modules.cast_into::<PyDict>()?;
            let Some(module) = modules.get_item(intern!(py, "dpctl.memory._memory"))? else {
                return Ok(false);
            };
            let base = module.getattr("_Memory")?.cast_into::<PyType>()?;
            BASE.get_or_init(|| Box::new(base.unbind()))
        }
    };
    is_of(object, base)
}

/// Whether the object is of the class by its type: a mock object's `__class__` is the class that it stands for.
pub(crate) fn is_of(object: &Bound<'_, PyAny>, class: &Py<PyType>) -> PyResult<bool> {
    object.get_type().is_subclass(class.bind(object.py()))
}

/// The address of the SYCL reference of an object of one of dpctl's classes. The class's own method reads it, which refuses
/// other objects, and not that of a subclass.
pub(crate) fn address(
    object: &Bound<'_, PyAny>,
    class: &Py<PyType>,
) -> PyResult<*mut std::ffi::c_void> {
    let py = object.py();
    let address: usize = class
        .bind(py)
        .call_method1(intern!(py, "addressof_ref"), (object,))?
        .extract()?;
    Ok(std::ptr::with_exposed_provenance_mut(address))
}

/// A reference of zeusm's own to the device of a `dpctl.SyclDevice`.
pub(crate) fn device_reference(device: &Bound<'_, PyAny>) -> PyResult<DeviceRef> {
    let address = address(device, &Dpctl::get(device.py())?.device)?;
    // SAFETY: dpctl's device object holds a valid reference as long as it is alive, which it is until the copy is made.
    unsafe { DeviceRef::copy_from_raw(address) }.or_raise()
}

/// A reference of zeusm's own to the queue of a `dpctl.SyclQueue`.
pub(crate) fn queue_reference(queue: &Bound<'_, PyAny>) -> PyResult<QueueRef> {
    let address = address(queue, &Dpctl::get(queue.py())?.queue)?;
    // SAFETY: dpctl's queue object holds a valid reference as long as it is alive, which it is until the copy is made.
    unsafe { QueueRef::copy_from_raw(address) }.or_raise()
}
