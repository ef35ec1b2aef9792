//! `IPCMemoryHandle`.

use std::sync::Arc;
use std::time::Instant;

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};

use super::opened;
use crate::errors::OrRaise;
use crate::getters::getters;
use crate::interpreter::detach;
use crate::memory::{Owner, PyMemory};
use crate::resolve::{binding_or_default, default_binding};
use crate::shown::class_name;
use crate::stacks;
use zeusm::{IpcHandle, ipc};
use zeusm_process::Mutex;

/// A handle of USM that other processes of the machine can open.
///
/// A handle can be sent by any means: as bytes, or pickled to a queue, a pipe or a file. It contains a secret: every process
/// that has the handle can access the memory. This process still owns the memory. A handle object keeps it alive until the
/// handle is closed; the handle's bytes do not, and cannot be opened after the memory is freed. On Windows there are no handles.
///
/// Parameters
/// ----------
/// usm_memory : MemoryUSMShared or MemoryUSMDevice or MemoryUSMHost
///     Any memory of this process, or a slice of it. That of another package, by `as_usm_memory`, can be opened as long as the
///     handle object is open.
///
/// Raises
/// ------
/// TypeError
///     When `usm_memory` is not a memory object of zeusm.
/// ValueError
///     When it has no bytes, is closed, or is another process's, which has to export it itself.
/// IPCError
///     When the driver does not support IPC of memory, and always on Windows.
///
/// Examples
/// --------
/// >>> import zeusm.memory as zm
/// >>> memory = zm.MemoryUSMDevice(64)
/// >>> handle = zm.IPCMemoryHandle(memory)
/// >>> handle.usm_type, handle.nbytes
/// ('device', 64)
/// >>> raw = handle.to_bytes()  # for another process
/// >>> with zm.IPCMemoryHandle.open(raw) as there:
/// ...     memory.memset(7)
/// ...     there.tobytes() == bytes([7]) * 64
/// True
#[pyclass(name = "IPCMemoryHandle", module = "zeusm.memory", frozen)]
pub(crate) struct PyIpcHandle {
    handle: IpcHandle,
    /// What keeps the memory, and its export, if this process owns it; `None` when the handle is closed.
    held: Mutex<Option<Held>>,
}

type Held = Arc<dyn Send + Sync>;

impl PyIpcHandle {
    /// Makes a handle of all bytes of a memory object.
    fn of(py: Python<'_>, memory: &PyMemory) -> PyResult<Self> {
        let _pin = memory.pins.pin()?;
        if memory.nbytes == 0 {
            return Err(PyValueError::new_err(
                "USM memory object has a null pointer: of no bytes there is nothing to share",
            ));
        }
        let owner = memory.share_owner(py);
        let first = memory.for_export(py)?;
        let range = first..first + memory.nbytes;
        let (handle, held): (_, Held) = match owner {
            Some(Owner::Shared(allocation)) => {
                let base = allocation.as_ptr().addr();
                let range = range.start - base..range.end - base;
                let handle = detach(py, || IpcHandle::new(&allocation, range)).or_raise()?;
                (handle, allocation)
            }
            Some(Owner::Object(owner)) => {
                let at = memory.context_device();
                let foreign = || IpcHandle::of_foreign(at.context(), at.device(), range);
                let (handle, export) = detach(py, foreign).or_raise()?;
                // The export ends before the owner may free the memory.
                (handle, Arc::new((export, owner)))
            }
            _ => {
                return Err(PyValueError::new_err(
                    "this memory was opened by a handle: pass that handle on",
                ));
            }
        };
        Ok(Self {
            handle,
            held: Mutex::new(Some(held)),
        })
    }

    /// What the handle holds.
    ///
    /// # Errors
    /// `RuntimeError` when it is closed.
    fn check_open(&self) -> PyResult<Held> {
        let held = self.held.lock().clone();
        held.ok_or_else(|| PyRuntimeError::new_err("IPC handle has already been closed"))
    }
}

#[pymethods]
impl PyIpcHandle {
    #[new]
    fn new(usm_memory: &Bound<'_, PyAny>) -> PyResult<Self> {
        let memory = usm_memory.cast::<PyMemory>().map_err(|_| {
            PyTypeError::new_err(format!(
                "IPC handles are made of zeusm's USM memory objects, not of {}",
                class_name(usm_memory)
            ))
        })?;
        Self::of(usm_memory.py(), memory.get())
    }

    /// Whether new memory can be exported: the Level Zero driver in use supports it, and the system, Linux, allows it.
    ///
    /// The CPU runtime needs system calls that a filter (seccomp) may forbid, and /proc. A shortage, of descriptors for
    /// instance, does not count, as it may pass.
    ///
    /// Returns
    /// -------
    /// bool
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> zm.IPCMemoryHandle.is_available()
    /// True
    #[staticmethod]
    fn is_available(py: Python<'_>) -> PyResult<bool> {
        let binding = default_binding(py)?;
        let driver = binding.context_device().device().driver();
        detach(py, || ipc::is_supported(driver)).or_raise()
    }

    /// Makes a handle of the result of `to_bytes`, in this or another process.
    ///
    /// Raises
    /// ------
    /// IPCError
    ///     When the bytes are not a handle of this version of zeusm, or are damaged.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMDevice(64)
    /// >>> handle = memory.ipc_handle()
    /// >>> zm.IPCMemoryHandle.from_bytes(handle.to_bytes()).nbytes
    /// 64
    #[staticmethod]
    fn from_bytes(handle_bytes: PyBackedBytes) -> PyResult<Self> {
        Ok(Self {
            handle: IpcHandle::from_bytes(&handle_bytes).or_raise()?,
            held: Mutex::new(Some(Arc::new(()))),
        })
    }

    /// The handle as bytes.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     When the handle is closed.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMDevice(64)
    /// >>> handle = memory.ipc_handle()
    /// >>> type(handle.to_bytes())
    /// <class 'bytes'>
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.check_open()?;
        Ok(PyBytes::new(py, &self.handle.to_bytes()))
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.to_bytes(py)
    }

    /// Opens the memory in this process.
    ///
    /// Opening a handle again returns another object of the same mapping, which is unmapped when the last of the objects is
    /// closed or dropped.
    ///
    /// Parameters
    /// ----------
    /// handle_bytes : bytes or IPCMemoryHandle
    ///     The handle from the process that owns the memory.
    /// device : optional
    ///     The `dpctl.SyclDevice` to open it on, which must be the device of the memory, or a SYCL object that determines a
    ///     context with that device; by default the device of default allocations.
    /// nbytes : int, optional
    ///     The number of bytes to open, from the first one; by default all bytes of the handle.
    ///
    /// Returns
    /// -------
    /// MemoryIPCDevice or MemoryIPCShared or MemoryIPCHost
    ///     A memory object, which is also a context manager that closes it. Its class is the kind that the driver reports
    ///     for the mapping, which may differ from the exporter's, see `exported_usm_type`.
    ///
    /// Raises
    /// ------
    /// IPCError
    ///     When the memory is on another machine or device, is freed, or is owned by a process that has exited or belongs to
    ///     another user; when the handle is malformed or forged; or when the system forbids access to the owner, or it does not
    ///     answer in 60 seconds, which Ctrl-C ends. The message has the reason.
    /// ValueError
    ///     When `nbytes` is not positive, or more than the size of the handle.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMDevice(64)
    /// >>> handle = memory.ipc_handle()
    /// >>> with zm.IPCMemoryHandle.open(handle) as opened:  # In another process, as a rule.
    /// ...     opened.memset(5)
    /// >>> memory[:2].tobytes()
    /// b'\x05\x05'
    #[staticmethod]
    #[pyo3(signature = (handle_bytes, device=None, nbytes=None))]
    fn open<'py>(
        handle_bytes: &Bound<'py, PyAny>,
        device: Option<&Bound<'py, PyAny>>,
        nbytes: Option<isize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = handle_bytes.py();
        let handle = match handle_bytes.cast::<Self>() {
            Ok(handle) => {
                handle.get().check_open()?;
                handle.get().handle.clone()
            }
            Err(_) => IpcHandle::from_bytes(&bytes(handle_bytes, "IPCMemoryHandle")?).or_raise()?,
        };
        let nbytes = match nbytes {
            None => handle.size(),
            Some(nbytes) => first(nbytes, handle.size())?,
        };
        let binding = binding_or_default(py, device, "device")?;
        let at = binding.context_device();
        let mapping = opening(py, || handle.open(at.context(), at.device()))?;
        opened::object(py, mapping, nbytes, binding)
    }

    /// Closes memory from `open`; the same as its `close()`.
    ///
    /// Parameters
    /// ----------
    /// usm_memory : MemoryIPCDevice or MemoryIPCShared or MemoryIPCHost
    ///     Closing again does nothing.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     When it is not memory from `open`.
    /// BufferError
    ///     While a memoryview, an array or an operation in flight uses it.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMDevice(64)
    /// >>> handle = memory.ipc_handle()
    /// >>> opened = zm.IPCMemoryHandle.open(handle)
    /// >>> zm.IPCMemoryHandle.close_mapping(opened)
    /// >>> opened.is_closed
    /// True
    #[staticmethod]
    fn close_mapping(usm_memory: &Bound<'_, PyAny>) -> PyResult<()> {
        if !usm_memory.is_instance_of::<PyMemory>() {
            return Err(PyTypeError::new_err(format!(
                "close_mapping takes USM memory, not {}",
                class_name(usm_memory)
            )));
        }
        if !opened::is_one(usm_memory) {
            return Err(PyRuntimeError::new_err(
                "close_mapping called on a non-IPC memory object: only memory that IPCMemoryHandle.open gave can be \
                 closed so",
            ));
        }
        usm_memory.call_method0("close").map(drop)
    }

    /// Closes the handle object, which then no longer keeps the memory alive. Other processes can still open the handle as
    /// long as the memory is alive. Closing again has no effect.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> memory = zm.MemoryUSMDevice(64)
    /// >>> handle = memory.ipc_handle()
    /// >>> handle.close()
    /// >>> handle.closed
    /// True
    fn close(&self, py: Python<'_>) {
        let held = self.held.lock().take();
        let _scope = stacks::scope(py);
        detach(py, || drop(held));
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().check_open()?;
        Ok(slf)
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, PyTuple>) {
        self.close(exception.py());
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let rebuild = slf.get_type().getattr("from_bytes")?;
        Ok((rebuild, (slf.get().to_bytes(slf.py())?,)))
    }

    /// Another handle object, which keeps the memory alive as this one does.
    fn __copy__(&self) -> PyResult<Self> {
        Ok(Self {
            held: Mutex::new(Some(self.check_open()?)),
            handle: self.handle.clone(),
        })
    }

    fn __deepcopy__(&self, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        let _ = memo;
        self.__copy__()
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed() { "True" } else { "False" };
        format!(
            "IPCMemoryHandle(size={}, closed={closed})",
            IpcHandle::LENGTH
        )
    }
}

getters! {
    PyIpcHandle,
    ">>> import zeusm.memory as zm\n\
     >>> memory = zm.MemoryUSMDevice(64)\n\
     >>> handle = memory.ipc_handle()";

    /// Whether the handle object is closed.
    "handle.closed" => "False"
    fn closed(&self) -> bool {
        self.check_open().is_err()
    }

    /// The number of bytes that the handle covers.
    "handle.nbytes" => "64"
    fn nbytes(&self) -> usize {
        self.handle.size()
    }

    /// The offset of its first byte in the driver's allocation, in bytes.
    "memory[16:].ipc_handle().offset - handle.offset" => "16"
    fn offset(&self) -> usize {
        self.handle.offset()
    }

    /// Kind of the memory: 'shared', 'device' or 'host'.
    "handle.usm_type" => "'device'"
    fn usm_type(&self) -> &'static str {
        self.handle.kind().name()
    }

    /// Level Zero's id of the allocation in the process that owns it.
    "handle.allocation_id == memory[16:].ipc_handle().allocation_id" => "True"
    fn allocation_id(&self) -> u64 {
        self.handle.allocation_id()
    }

    /// The `uuid.UUID` of the device that the memory is on.
    "type(handle.device_uuid)" => "<class 'uuid.UUID'>"
    fn device_uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        uuid(py, self.handle.device_uuid())
    }

    /// The id of the process that owns the memory.
    "import os\n>>> handle.pid == os.getpid()" => "True"
    fn pid(&self) -> u32 {
        self.handle.process()
    }
}

#[pymethods]
impl PyMemory {
    /// A handle of this memory for other processes; `IPCMemoryHandle(memory)` is the same.
    ///
    /// Returns
    /// -------
    /// IPCMemoryHandle
    ///
    /// Raises
    /// ------
    /// IPCError
    ///     When the driver does not support IPC of memory, and always on Windows.
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

/// Calls `open` without the GIL; signals are handled while it waits for the other process.
pub(super) fn opening<T: Send>(
    py: Python<'_>,
    open: impl Fn() -> Result<T, ipc::Error> + Sync,
) -> PyResult<T> {
    let begun = Instant::now();
    loop {
        match detach(py, &open) {
            Err(ipc::Error::Interrupted { .. }) if begun.elapsed() < ipc::ANSWER_TIMEOUT => {
                py.check_signals()?;
            }
            opened => return opened.or_raise(),
        }
    }
}

/// The bytes of a handle that is no object of the class.
pub(super) fn bytes(handle: &Bound<'_, PyAny>, class: &str) -> PyResult<PyBackedBytes> {
    handle.extract().map_err(|_| {
        PyTypeError::new_err(format!(
            "handle_bytes must be bytes, a bytearray or an {class}, not {}",
            class_name(handle)
        ))
    })
}

/// The arguments of pickle: the handle is made of its bytes again.
pub(super) type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>,));

/// A `uuid.UUID`.
pub(super) fn uuid(py: Python<'_>, bytes: [u8; 16]) -> PyResult<Bound<'_, PyAny>> {
    let bytes = PyBytes::new(py, &bytes);
    py.import("uuid")?
        .getattr("UUID")?
        .call1((py.None(), bytes))
}

/// The number of bytes to open.
fn first(nbytes: isize, size: usize) -> PyResult<usize> {
    match usize::try_from(nbytes) {
        Ok(nbytes) if (1..=size).contains(&nbytes) => Ok(nbytes),
        Ok(nbytes) if nbytes > 0 => Err(PyValueError::new_err(format!(
            "nbytes is {nbytes}, and the handle names {size} bytes"
        ))),
        _ => Err(PyValueError::new_err(format!(
            "nbytes must be > 0 for IPC open, not {nbytes}"
        ))),
    }
}
