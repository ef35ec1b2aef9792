//! `IPCEventHandle`.

use std::sync::Arc;
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::handle::{Reduced, bytes, opening, uuid};
use crate::errors::OrRaise;
use crate::event::PyEvent;
use crate::getters::getters;
use crate::in_flight;
use crate::interpreter::detach;
use crate::resolve::{binding_or_default, default_binding};
use zeusm::{IpcEventHandle, ipc};

/// A handle of an event that other processes of the machine can open, from :meth:`Event.ipc_handle`.
///
/// A handle can be sent by any means: as bytes, or pickled to a queue, a pipe or a file. It can be opened as long as the process
/// that made it runs, also after the operation is complete and all objects of it are dropped. On Windows there are no handles.
///
/// Examples
/// --------
/// >>> import zeusm
/// >>> import zeusm.memory as zm
/// >>> event = zm.MemoryUSMDevice(4096).memset_async(1)
/// >>> raw = event.ipc_handle().to_bytes()  # for another process
/// >>> opened = zeusm.IPCEventHandle.open(raw)
/// >>> zm.MemoryUSMDevice(4096).memset_async(2, depends=opened).wait()
/// True
#[pyclass(name = "IPCEventHandle", module = "zeusm", frozen)]
pub(crate) struct PyIpcEventHandle(IpcEventHandle);

#[pymethods]
impl PyIpcEventHandle {
    /// Whether the Level Zero driver in use supports events between processes, and the system, Linux, allows it.
    ///
    /// Returns
    /// -------
    /// bool
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> zeusm.IPCEventHandle.is_available()
    /// True
    #[staticmethod]
    fn is_available(py: Python<'_>) -> PyResult<bool> {
        let binding = default_binding(py)?;
        let driver = binding.context_device().device().driver();
        detach(py, || ipc::are_events_supported(driver)).or_raise()
    }

    /// Makes a handle of the result of `to_bytes`, in this or another process.
    ///
    /// Raises
    /// ------
    /// IPCError
    ///     When the bytes are not the handle of an event of this version of zeusm, or are damaged.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> import zeusm.memory as zm
    /// >>> raw = zm.MemoryUSMDevice(64).memset_async(1).ipc_handle().to_bytes()
    /// >>> zeusm.IPCEventHandle.from_bytes(raw).to_bytes() == raw
    /// True
    #[staticmethod]
    fn from_bytes(handle_bytes: PyBackedBytes) -> PyResult<Self> {
        IpcEventHandle::from_bytes(&handle_bytes)
            .map(Self)
            .or_raise()
    }

    /// The handle as bytes.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> type(zm.MemoryUSMDevice(64).memset_async(1).ipc_handle().to_bytes())
    /// <class 'bytes'>
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.to_bytes(py)
    }

    /// Opens the event in this process.
    ///
    /// Parameters
    /// ----------
    /// handle_bytes : bytes or IPCEventHandle
    ///     The handle from the process whose operation it is.
    /// device : optional
    ///     The `dpctl.SyclDevice` to wait on, which must be the device of the operation, or a SYCL object that determines a
    ///     context with that device; by default the device of default allocations.
    ///
    /// Returns
    /// -------
    /// Event
    ///     For `wait`, `await`, `sycl_event`, and the `depends` of other operations, whose device then waits for it without the
    ///     host. If the process ends before its operation is complete, the event and the operations that wait for it raise
    ///     IPCError. It has no timestamps.
    ///
    /// Raises
    /// ------
    /// IPCError
    ///     When the event is of another machine or device; when its process has exited or belongs to another user, or its operation
    ///     has failed; when the handle is malformed or forged; when the driver does not support events between processes. The
    ///     message has the reason.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> import zeusm.memory as zm
    /// >>> handle = zm.MemoryUSMDevice(64).memset_async(1).ipc_handle()
    /// >>> zeusm.IPCEventHandle.open(handle).wait()  # In another process, as a rule.
    /// True
    #[staticmethod]
    #[pyo3(signature = (handle_bytes, device=None))]
    fn open(
        handle_bytes: &Bound<'_, PyAny>,
        device: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyEvent> {
        let py = handle_bytes.py();
        let handle = match handle_bytes.cast::<Self>() {
            Ok(handle) => handle.get().0.clone(),
            Err(_) => {
                IpcEventHandle::from_bytes(&bytes(handle_bytes, "IPCEventHandle")?).or_raise()?
            }
        };
        let binding = binding_or_default(py, device, "device")?;
        let at = binding.context_device();
        let queue = at.queue().or_raise()?;
        let event = opening(py, || handle.open(queue))?;
        Ok(PyEvent::new(
            event,
            queue.clone(),
            Arc::clone(at),
            Instant::now(),
        ))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let rebuild = slf.get_type().getattr("from_bytes")?;
        Ok((rebuild, (slf.get().to_bytes(slf.py()),)))
    }

    fn __repr__(&self) -> String {
        format!("IPCEventHandle(pid={})", self.0.process())
    }
}

getters! {
    PyIpcEventHandle,
    ">>> import zeusm.memory as zm\n\
     >>> handle = zm.MemoryUSMDevice(64).memset_async(1).ipc_handle()";

    /// The `uuid.UUID` of the device that signals the event.
    "type(handle.device_uuid)" => "<class 'uuid.UUID'>"
    fn device_uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        uuid(py, self.0.device_uuid())
    }

    /// The id of the process whose operation it is.
    "import os\n>>> handle.pid == os.getpid()" => "True"
    fn pid(&self) -> u32 {
        self.0.process()
    }
}

#[pymethods]
impl PyEvent {
    /// A handle of this event for other processes, whose devices can wait for it.
    ///
    /// There the event is complete after this one and all operations that were submitted to the same context and device before
    /// this call. The device signals it; the host takes part only if the operation waits for the host, or for an event of a third
    /// process.
    ///
    /// Returns
    /// -------
    /// IPCEventHandle
    ///
    /// Raises
    /// ------
    /// LevelZeroError
    ///     When the operation has failed.
    /// IPCError
    ///     When the driver does not support events between processes, or the system refuses a resource; always on Windows.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm
    /// >>> import zeusm.memory as zm
    /// >>> handle = zm.MemoryUSMDevice(4096).memset_async(1).ipc_handle()
    /// >>> zeusm.IPCEventHandle.open(handle).wait(timeout=10)  # In another process, as a rule.
    /// True
    fn ipc_handle(&self, py: Python<'_>) -> PyResult<PyIpcEventHandle> {
        let queue = &self.queue;
        let handle = detach(py, || IpcEventHandle::new(queue, &self.event)).or_raise()?;
        in_flight::reclaim_later(queue);
        Ok(PyIpcEventHandle(handle))
    }
}
