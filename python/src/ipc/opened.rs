//! The classes of another process's memory: subclasses of the memory classes. A closed object behaves as dpctl's do.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::getters::getters;
use crate::memory::{MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, Owner, PyMemory, Terms};
use crate::resolve::QueueBinding;
use zeusm::ipc::Mapping;
use zeusm::usm::UsmKind;

/// Defines a class.
macro_rules! class {
    ($(#[$documentation:meta])* $name:ident, $base:ident) => {
        $(#[$documentation])*
        #[pyclass(extends = $base, module = "zeusm.memory", frozen)]
        pub(crate) struct $name;

        getters! {
            $name,
            ">>> import zeusm.memory as zm\n\
             >>> handle = zm.MemoryUSMDevice(64).ipc_handle()\n\
             >>> opened = zm.IPCMemoryHandle.open(handle)";

            /// Whether the mapping is closed; the same as `closed`.
            "opened.is_closed" => "False"
            fn is_closed(slf: &Bound<'_, Self>) -> bool {
                slf.as_super().as_super().get().pins.is_closed()
            }

            /// Kind of the memory in the process that owns it: 'shared', 'device' or 'host'. The kind in this process, which
            /// the class shows, may differ: Intel's driver opens shared memory as device memory.
            "opened.exported_usm_type" => "'device'"
            fn exported_usm_type(slf: &Bound<'_, Self>) -> PyResult<&'static str> {
                let memory = slf.as_super().as_super().get();
                let kind = memory.exported_kind().unwrap_or(memory.kind);
                let _pin = memory.pins.pin()?;
                Ok(kind.name())
            }

            /// Size of the memory in bytes; 0 after closing.
            "opened.nbytes" => "64"
            fn nbytes(slf: &Bound<'_, Self>) -> usize {
                let memory = slf.as_super().as_super().get();
                memory.pins.pin().map_or(0, |_pin| memory.nbytes)
            }

            /// Size of the memory in bytes; 0 after closing.
            "opened.size" => "64"
            fn size(slf: &Bound<'_, Self>) -> usize {
                Self::nbytes(slf)
            }
        }

        #[pymethods]
        impl $name {
            fn __len__(slf: &Bound<'_, Self>) -> usize {
                Self::nbytes(slf)
            }

            /// Address of the first byte in this process; 0 after closing.
            #[getter]
            fn _pointer(slf: &Bound<'_, Self>) -> PyResult<usize> {
                let memory = slf.as_super().as_super().get();
                match memory.pins.pin() {
                    Ok(_pin) => memory.for_export(slf.py()),
                    Err(_) => Ok(0),
                }
            }
        }
    };
}

class! {
    /// Another process's USM-device memory, from :meth:`IPCMemoryHandle.open`.
    ///
    /// A :class:`MemoryUSMDevice` in every other respect. `close()`, the end of a `with` block, or dropping the last
    /// reference closes it.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> handle = zm.MemoryUSMDevice(64).ipc_handle()
    /// >>> with zm.IPCMemoryHandle.open(handle) as opened:
    /// ...     type(opened).__name__, opened.nbytes
    /// ('MemoryIPCDevice', 64)
    MemoryIPCDevice, MemoryUSMDevice
}
class! {
    /// Another process's USM-shared memory, from :meth:`IPCMemoryHandle.open`.
    ///
    /// A :class:`MemoryUSMShared` in every other respect; see :class:`MemoryIPCDevice`.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> handle = zm.MemoryUSMShared(64).ipc_handle()
    /// >>> with zm.IPCMemoryHandle.open(handle) as opened:
    /// ...     type(opened).__name__, opened.nbytes
    /// ('MemoryIPCShared', 64)
    MemoryIPCShared, MemoryUSMShared
}
class! {
    /// Another process's USM-host memory, from :meth:`IPCMemoryHandle.open`.
    ///
    /// A :class:`MemoryUSMHost` in every other respect; see :class:`MemoryIPCDevice`.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> handle = zm.MemoryUSMHost(64).ipc_handle()
    /// >>> with zm.IPCMemoryHandle.open(handle) as opened:
    /// ...     type(opened).__name__, opened.nbytes
    /// ('MemoryIPCHost', 64)
    MemoryIPCHost, MemoryUSMHost
}

/// The memory object for the first `nbytes` of a mapping.
pub(super) fn object(
    py: Python<'_>,
    mapping: Mapping,
    nbytes: usize,
    binding: Arc<QueueBinding>,
) -> PyResult<Bound<'_, PyAny>> {
    let kind = mapping.kind();
    let pointer = mapping.as_ptr().addr();
    let memory = PyMemory::new(
        binding.into(),
        pointer,
        nbytes,
        kind,
        Terms::new(false),
        Owner::Mapping(Arc::new(mapping)),
    );
    let base = PyClassInitializer::from(memory);
    Ok(match kind {
        UsmKind::Host => {
            let host = base.add_subclass(MemoryUSMHost).add_subclass(MemoryIPCHost);
            Bound::new(py, host)?.into_any()
        }
        UsmKind::Device => {
            let device = base
                .add_subclass(MemoryUSMDevice)
                .add_subclass(MemoryIPCDevice);
            Bound::new(py, device)?.into_any()
        }
        UsmKind::Shared => {
            let shared = base
                .add_subclass(MemoryUSMShared)
                .add_subclass(MemoryIPCShared);
            Bound::new(py, shared)?.into_any()
        }
    })
}

/// Whether it is an object of one of these classes.
pub(super) fn is_one(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<MemoryIPCDevice>()
        || object.is_instance_of::<MemoryIPCShared>()
        || object.is_instance_of::<MemoryIPCHost>()
}
