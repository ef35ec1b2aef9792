//! dpctl's functions for IPC handles of device memory, and the method of memory objects.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::handle::PyIpcHandle;
use crate::memory::{MemoryUSMDevice, PyMemory};

/// A handle of USM-device memory, as bytes.
///
/// For other kinds, use :class:`IPCMemoryHandle`.
///
/// Parameters
/// ----------
/// usm_memory : MemoryUSMDevice
///     Memory that zeusm allocated, or a slice of it.
///
/// Returns
/// -------
/// bytes
///     The argument of `SyclIPCOpenMemHandle` in another process.
///
/// Raises
/// ------
/// TypeError
///     When it is not USM-device memory.
///
/// Examples
/// --------
/// >>> import zeusm.memory as zm
/// >>> memory = zm.MemoryUSMDevice(64)
/// >>> there = zm.SyclIPCOpenMemHandle(zm.SyclIPCGetMemHandle(memory))
/// >>> there.nbytes
/// 64
/// >>> zm.SyclIPCCloseMemHandle(there)
#[pyfunction(name = "SyclIPCGetMemHandle")]
pub(crate) fn get_mem_handle<'py>(usm_memory: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let py = usm_memory.py();
    let memory = usm_memory.cast::<MemoryUSMDevice>().map_err(|_| {
        PyTypeError::new_err(format!(
            "SyclIPCGetMemHandle takes USM-device memory, not {}: for other kinds use IPCMemoryHandle",
            usm_memory.get_type()
        ))
    })?;
    let handle = PyIpcHandle::of(py, memory.as_super().get())?;
    handle.to_bytes(py)
}

/// Opens a handle; the same as :meth:`IPCMemoryHandle.open`.
///
/// Parameters
/// ----------
/// handle_bytes : bytes
///     The result of `SyclIPCGetMemHandle` in another process.
/// device : dpctl.SyclDevice, optional
///     The device to open it on; by default the device of default allocations.
/// nbytes : int, optional
///     The number of bytes to open, from the first one; by default all.
///
/// Returns
/// -------
/// MemoryIPCDevice
///
/// Examples
/// --------
/// >>> import zeusm.memory as zm
/// >>> memory = zm.MemoryUSMDevice(64)
/// >>> data = zm.SyclIPCGetMemHandle(memory)
/// >>> opened = zm.SyclIPCOpenMemHandle(data, memory.sycl_device, 64)
/// >>> opened.nbytes
/// 64
#[pyfunction(name = "SyclIPCOpenMemHandle")]
#[pyo3(signature = (handle_bytes, device=None, nbytes=None))]
pub(crate) fn open_mem_handle<'py>(
    handle_bytes: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
    nbytes: Option<isize>,
) -> PyResult<Bound<'py, PyAny>> {
    PyIpcHandle::open(handle_bytes, device, nbytes)
}

/// Closes memory from `SyclIPCOpenMemHandle`; the same as its `close()`.
///
/// Parameters
/// ----------
/// usm_memory : MemoryIPCDevice
///     Memory from `SyclIPCOpenMemHandle`; closing it again has no effect.
///
/// Examples
/// --------
/// >>> import zeusm.memory as zm
/// >>> memory = zm.MemoryUSMDevice(64)
/// >>> data = zm.SyclIPCGetMemHandle(memory)
/// >>> opened = zm.SyclIPCOpenMemHandle(data, memory.sycl_device, 64)
/// >>> zm.SyclIPCCloseMemHandle(opened)
/// >>> opened.is_closed
/// True
#[pyfunction(name = "SyclIPCCloseMemHandle")]
pub(crate) fn close_mem_handle(usm_memory: &Bound<'_, PyAny>) -> PyResult<()> {
    PyIpcHandle::close_mapping(usm_memory)
}

#[pymethods]
impl PyMemory {
    /// A handle of this memory for other processes; `IPCMemoryHandle(memory)` is the same.
    ///
    /// Returns
    /// -------
    /// IPCMemoryHandle
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMDevice(64)
    /// >>> handle = memory.ipc_handle()
    /// >>> with zm.IPCMemoryHandle.open(handle) as opened:
    /// ...     opened.nbytes
    /// 64
    fn ipc_handle(&self, py: Python<'_>) -> PyResult<PyIpcHandle> {
        PyIpcHandle::of(py, self)
    }
}
