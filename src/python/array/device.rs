//! What DLPack calls a device: the position of its root device among all those of SYCL.
//!
//! Source: DLPack's header (`kDLOneAPI`: devices that are no part of another, and their default context); dpctl
//! (`SyclDevice.get_device_id`) and PyTorch count in `sycl::device::get_devices()`.

use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::python::dpctl::Dpctl;
use crate::python::place::Place;
use crate::python::syclobj::Target;

/// The root device of a place.
pub(in crate::python) struct Root {
    pub(super) number: i32,
    /// Whether the place's context is the default one of the device, the only one in which DLPack has USM.
    pub(super) is_default_context: bool,
    /// A queue that nobody else submits to: what another package makes it wait for is what a consumer has to wait for.
    waiting: PyOnceLock<Py<PyAny>>,
}

impl Root {
    /// The root device of a place.
    ///
    /// # Errors
    /// Why there is none: `RuntimeError` without a SYCL context, `BufferError` for a device that SYCL does not list.
    pub(super) fn of<'a>(py: Python<'_>, place: &'a Place) -> PyResult<&'a Self> {
        place.root.get_or_try_init(py, || Self::find(py, place))
    }

    /// The queue to be made to wait.
    pub(super) fn waiting<'py>(
        &self,
        py: Python<'py>,
        place: &Place,
    ) -> PyResult<Bound<'py, PyAny>> {
        let queue = self.waiting.get_or_try_init(py, || {
            Ok::<_, PyErr>(Dpctl::get(py)?.queue_of(py, place)?.unbind())
        })?;
        Ok(queue.bind(py).clone())
    }

    fn find(py: Python<'_>, place: &Place) -> PyResult<Self> {
        place.sycl()?;
        let dpctl = Dpctl::get(py)?;
        let mut device = dpctl.device_of(py, place)?;
        loop {
            let parent = device.getattr("parent_device")?;
            if parent.is_none() {
                break;
            }
            device = parent;
        }
        for (number, root) in (0..).zip(dpctl.root_devices(py)?) {
            if root.eq(&device)? {
                let default = Target::of_queue(&dpctl.cached_queue(&root)?)?.place()?;
                return Ok(Self {
                    number,
                    is_default_context: default.context() == place.context(),
                    waiting: PyOnceLock::new(),
                });
            }
        }
        Err(PyBufferError::new_err(format!(
            "{} is not among the devices that SYCL lists, so that it has no DLPack device number",
            place.device().name()
        )))
    }
}

/// What a DLPack device number means: the default context of the device, its place and queue.
///
/// # Errors
/// `BufferError` when SYCL has no such device.
pub(super) fn numbered(py: Python<'_>, number: i32) -> PyResult<(Target, Arc<Place>)> {
    let dpctl = Dpctl::get(py)?;
    let devices = dpctl.root_devices(py)?;
    let device = usize::try_from(number)
        .ok()
        .and_then(|number| devices.get(number));
    let Some(device) = device else {
        return Err(PyBufferError::new_err(format!(
            "there is no SYCL device {number}: dpctl lists {}",
            devices.len()
        )));
    };
    let target = Target::of_queue(&dpctl.cached_queue(device)?)
        .map_err(|error| PyBufferError::new_err(format!("device {number}: {}", error.value(py))))?;
    let place = target.place()?;
    Ok((target, place))
}
