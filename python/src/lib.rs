//! The Python extension module `zeusm._zeusm`.
//!
//! Python objects over the safe crate: this layer converts, names errors as dpctl's users know them, and releases the
//! GIL around whatever may block. Its only unsafe code is for the buffer, capsule, DLPack and C ABIs.

mod adopt;
mod allocate;
mod array;
mod atomic;
mod c_api;
mod construct;
mod copies;
mod dpctl;
mod errors;
mod event;
mod in_flight;
mod ipc;
mod memory;
mod parse;
mod pins;
mod pool;
mod resolve;
mod runtime;
mod transfer;

use pyo3::prelude::*;

/// The compiled part of `zeusm`; use `zeusm` and `zeusm.memory`. Not yet tried without the GIL, which it therefore asks for.
#[pymodule(gil_used = true)]
mod _zeusm {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::array::{
        PyPointerAttributes, UsmArray, as_usm_array, asarray, empty, from_dlpack,
        from_sycl_usm_array_interface, pointer_attributes,
    };
    #[pymodule_export]
    use super::construct::as_usm_memory;
    #[pymodule_export]
    use super::event::PyEvent;
    #[pymodule_export]
    use super::ipc::{
        MemoryIPCDevice, MemoryIPCHost, MemoryIPCShared, PyIpcHandle, close_mem_handle,
        get_mem_handle, open_mem_handle,
    };
    #[pymodule_export]
    use super::memory::{MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, PyMemory, from_pickle};
    #[pymodule_export]
    use super::pool::{PyMemoryPool, PyPoolReport, PyPoolScope, PyPoolStatistics, get_pool};
    #[pymodule_export]
    use super::runtime::{PyRuntime, runtime, start};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add(
            "USMAllocationError",
            py.get_type::<super::errors::USMAllocationError>(),
        )?;
        module.add("IPCError", py.get_type::<super::errors::IPCError>())?;
        module.add(
            "LevelZeroError",
            py.get_type::<super::errors::LevelZeroError>(),
        )?;
        module.add(
            "RuntimeSelectionWarning",
            py.get_type::<super::errors::RuntimeSelectionWarning>(),
        )?;
        super::c_api::add(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
