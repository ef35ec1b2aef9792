//! What DLPack calls a device: the position of its root device among all those of SYCL.
//!
//! Source: DLPack's header (`kDLOneAPI`: devices that are no part of another, and their default context); dpctl
//! (`SyclDevice.get_device_id`) and PyTorch count in `sycl::device::get_devices()`.

use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::python::dpctl::Dpctl;
use crate::python::errors::Explain;
use crate::python::place::Place;
use crate::python::spot::Spot;
use crate::python::syclobj::Target;
use crate::sycl::ContextRef;

/// The root device of a place.
#[derive(Clone, Copy)]
pub(in crate::python) struct Root {
    pub(super) number: i32,
    /// Whether the place's context is the default one of the device, the only one in which DLPack has USM.
    pub(super) is_default_context: bool,
}

impl Root {
    /// The root device of a place.
    ///
    /// # Errors
    /// Why there is none: `RuntimeError` without a SYCL context, `BufferError` for a device that SYCL does not list.
    pub(super) fn of(py: Python<'_>, place: &Place) -> PyResult<Self> {
        place
            .root
            .get_or_try_init(py, || Self::find(py, place))
            .copied()
    }

    fn find(py: Python<'_>, place: &Place) -> PyResult<Self> {
        place.sycl()?;
        let mut device = Dpctl::get(py)?.device_of(py, place)?;
        loop {
            let parent = device.getattr("parent_device")?;
            if parent.is_none() {
                break;
            }
            device = parent;
        }
        for (number, (root, _)) in (0..).zip(listed(py)?) {
            if root.bind(py).eq(&device)? {
                let default = Numbered::get(py, number)?.spot.place();
                return Ok(Self {
                    number,
                    is_default_context: default.shares_context(place),
                });
            }
        }
        Err(PyBufferError::new_err(format!(
            "{} is not among the devices that SYCL lists, so that it has no DLPack device number",
            place.device().name()
        )))
    }
}

/// What a DLPack device number means: a root device in its default context.
pub(super) struct Numbered {
    pub(super) context: ContextRef,
    /// There, with dpctl's own queue.
    spot: Arc<Spot>,
    /// A queue that nobody else submits to: what another package makes it wait for is what a consumer has to wait for.
    waiting: PyOnceLock<Py<PyAny>>,
}

impl Numbered {
    /// The device of that number.
    ///
    /// # Errors
    /// `BufferError` when SYCL has no such device, or it is none of Level Zero.
    pub(super) fn get(py: Python<'_>, number: i32) -> PyResult<&'static Self> {
        let devices = listed(py)?;
        let device = usize::try_from(number)
            .ok()
            .and_then(|number| devices.get(number));
        let Some((device, numbered)) = device else {
            return Err(PyBufferError::new_err(format!(
                "there is no SYCL device {number}: dpctl lists {}",
                devices.len()
            )));
        };
        numbered.get_or_try_init(py, || {
            let queue = Dpctl::get(py)?.cached_queue(device.bind(py))?;
            let target = Target::of_queue(&queue).explain(py, |error| {
                PyBufferError::new_err(format!("device {number}: {}", error.value(py)))
            })?;
            Ok(Self {
                context: target.context.clone(),
                spot: target.spot(py)?,
                waiting: PyOnceLock::new(),
            })
        })
    }

    /// Memory there belongs to dpctl's own queue.
    pub(super) fn spot(&self) -> &Arc<Spot> {
        &self.spot
    }

    /// The queue to be made to wait.
    pub(super) fn waiting<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let queue = self.waiting.get_or_try_init(py, || {
            Ok::<_, PyErr>(Dpctl::get(py)?.queue_of(py, self.spot.place())?.unbind())
        })?;
        Ok(queue.bind(py).clone())
    }
}

/// The root devices, which stay the same for the life of the process, and what is known of each.
fn listed(py: Python<'_>) -> PyResult<&'static [(Py<PyAny>, PyOnceLock<Numbered>)]> {
    static LISTED: PyOnceLock<Vec<(Py<PyAny>, PyOnceLock<Numbered>)>> = PyOnceLock::new();
    let listed = LISTED.get_or_try_init(py, || {
        let devices = Dpctl::get(py)?.root_devices(py)?;
        let unknown = |device: Bound<'_, PyAny>| (device.unbind(), PyOnceLock::new());
        Ok::<_, PyErr>(devices.into_iter().map(unknown).collect())
    })?;
    Ok(listed)
}
