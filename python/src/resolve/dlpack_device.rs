//! DLPack's device numbers: the position of a root device among all root devices of SYCL.
//!
//! Source: DLPack's header (`kDLOneAPI`: devices that are not sub-devices, and their default context); dpctl
//! (`SyclDevice.get_device_id`) and PyTorch count in `sycl::device::get_devices()`.

use std::sync::Arc;

use once_cell::race::OnceBox;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use super::context_device::RootDevice;
use super::{ContextDevice, QueueBinding, ResolvedSyclObject};
use crate::dpctl::Dpctl;
use crate::errors::Explain;
use crate::shown::naming;
use zeusm::sycl::ContextRef;

/// The root device of a context and device.
///
/// # Errors
/// `RuntimeError` without a SYCL context, `BufferError` for a device that SYCL does not list.
pub(crate) fn root_device(py: Python<'_>, context_device: &ContextDevice) -> PyResult<RootDevice> {
    let root = &context_device.root;
    root.get_or_try_init(|| find_root(py, context_device).map(Box::new))
        .copied()
}

fn find_root(py: Python<'_>, context_device: &ContextDevice) -> PyResult<RootDevice> {
    context_device.sycl()?;
    let mut device = context_device.sycl_device(py)?;
    loop {
        let parent = device.getattr("parent_device")?;
        if parent.is_none() {
            break;
        }
        device = parent;
    }
    for (number, (root, _)) in (0..).zip(root_devices(py)?) {
        if root.bind(py).eq(&device)? {
            let default = DlpackDevice::get(py, number)?.binding.context_device();
            return Ok(RootDevice {
                number,
                is_default_context: default.shares_context(context_device),
            });
        }
    }
    Err(PyBufferError::new_err(format!(
        "{} is not among the devices that SYCL lists, so that it has no DLPack device number",
        context_device.device()
    )))
}

/// To be called before host memory in a default context is exchanged by DLPack. A tensor has no queue. dpctl and dpnp take
/// their cached queue of the device that SYCL reports for the pointer, which for host memory is the first one of the context,
/// whatever the tensor's device number is. From now on, accesses to host memory of the context wait for that queue, too.
pub(crate) fn exchange_host_memory(py: Python<'_>, context_device: &ContextDevice) -> PyResult<()> {
    if context_device.host_queue().is_some() {
        return Ok(());
    }
    let first = ContextDevice::in_sycl(context_device.sycl()?, None)?;
    let device = DlpackDevice::get(py, root_device(py, &first)?.number)?;
    context_device.set_host_queue(device.binding.queue_or_cached(py)?);
    Ok(())
}

/// The device of a DLPack device number: a root device in its default context.
pub(crate) struct DlpackDevice {
    pub(crate) context: ContextRef,
    /// The binding with dpctl's cached queue.
    pub(crate) binding: Arc<QueueBinding>,
    /// A queue without other work. An exporter makes it wait for the work on the array, and the consumer waits for the
    /// queue.
    waiting: OnceBox<Py<PyAny>>,
}

impl DlpackDevice {
    /// The device with the given number.
    ///
    /// # Errors
    /// `BufferError` when SYCL has no such device, or it is not a Level Zero device.
    pub(crate) fn get(py: Python<'_>, number: i32) -> PyResult<&'static Self> {
        let devices = root_devices(py)?;
        let device = usize::try_from(number)
            .ok()
            .and_then(|number| devices.get(number));
        let Some((device, resolved)) = device else {
            return Err(PyBufferError::new_err(format!(
                "there is no SYCL device {number}: dpctl lists {}",
                devices.len()
            )));
        };
        resolved.get_or_try_init(|| {
            let queue = Dpctl::get(py)?.cached_queue(device.bind(py))?;
            let resolved = ResolvedSyclObject::of_queue(&queue).explain(py, |error| {
                naming(error.value(py), |text| {
                    PyBufferError::new_err(format!("device {number}: {text}"))
                })
            })?;
            Ok(Box::new(Self {
                context: resolved.context.clone(),
                binding: resolved.bind(py)?,
                waiting: OnceBox::new(),
            }))
        })
    }

    /// The queue to pass to exporters as the stream.
    pub(crate) fn waiting<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let queue = self.waiting.get_or_try_init(|| {
            let queue = self.binding.context_device().new_sycl_queue(py)?;
            Ok::<_, PyErr>(Box::new(queue.unbind()))
        })?;
        Ok(queue.bind(py).clone())
    }
}

/// A root device, and the `DlpackDevice` of its number, resolved on first use.
type Listed = (Py<PyAny>, OnceBox<DlpackDevice>);

/// The root devices, which do not change in the lifetime of the process.
fn root_devices(py: Python<'_>) -> PyResult<&'static [Listed]> {
    static DEVICES: OnceBox<Vec<Listed>> = OnceBox::new();
    let devices = DEVICES.get_or_try_init(|| {
        let devices = Dpctl::get(py)?.root_devices(py)?;
        let unresolved = |device: Bound<'_, PyAny>| (device.unbind(), OnceBox::new());
        Ok::<_, PyErr>(Box::new(devices.into_iter().map(unresolved).collect()))
    })?;
    Ok(devices)
}
