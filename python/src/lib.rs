//! The Python extension module `zeusm._zeusm`: Python objects over the public API of the crate `zeusm`.
//!
//! It converts arguments and results, raises the same classes of exceptions as dpctl, and releases the GIL around every call
//! that may block. Its modules use each other in one direction, from the bottom up:
//!
//! - `library`: where the interpreter's functions are; `interpreter`: the check that the main interpreter imports the module, and its exit; `parking`: threads that it ends;
//! - `slots`: fields of classes that one version of CPython has; `getters`: properties with examples;
//! - `stacks`: Python's stacks as numbers; `traced`: allocations that `tracemalloc` sees;
//! - `pins`, `errors`; `shown`: objects as the text of messages; `imports`: NumPy and its like;
//! - `dpctl`: dpctl's types, capsules and queues;
//! - `parse`: conversion of Python arguments to Rust types;
//! - `resolve`: the context, the device and the SYCL queue of an argument; `pointer`: the attributes of a pointer;
//! - `in_flight`, `transfer`, `event`: submitting operations, and waiting for them;
//! - `memory`, `pool`: the classes of memory objects and of pools;
//! - `history`: what was allocated, by whom;
//! - `allocate`: new memory; `array`: arrays, and the memory of other objects;
//! - `copies`, `construct`, `ipc`, `c_api`: copies, constructors, and memory between processes and packages.

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod allocate;
mod array;
mod c_api;
#[cfg(not(Py_LIMITED_API))]
mod calls;
mod construct;
mod copies;
mod cuda;
mod dpctl;
mod errors;
mod event;
mod getters;
mod history;
mod imports;
mod in_flight;
mod in_place;
mod interpreter;
mod ipc;
#[cfg(target_os = "linux")]
#[path = "library/linux.rs"]
mod library;
#[cfg(windows)]
#[path = "library/windows.rs"]
mod library;
#[cfg(target_os = "linux")]
mod machine;
mod memory;
mod ordered;
#[cfg(all(target_os = "linux", not(Py_3_14)))]
mod parking;
mod parse;
mod pins;
mod pointer;
mod pool;
mod resolve;
mod runtime;
mod shown;
#[cfg(not(Py_LIMITED_API))]
mod slots;
mod stacks;
mod traced;
mod transfer;

use pyo3::prelude::*;

/// The extension module; import `zeusm` and `zeusm.memory` instead. A free-threaded interpreter needs no GIL for it.
#[pymodule(gil_used = false)]
mod _zeusm {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::array::{
        UsmArray, as_usm_array, asarray, empty, from_arrow, from_dlpack,
        from_sycl_usm_array_interface, shared_queue,
    };
    #[pymodule_export]
    use super::c_api::torch_pools;
    #[pymodule_export]
    use super::construct::as_usm_memory;
    #[pymodule_export]
    use super::errors::{IPCError, LevelZeroError, RuntimeSelectionWarning, USMAllocationError};
    #[pymodule_export]
    use super::event::PyEvent;
    #[pymodule_export]
    use super::history::{
        PyHistoryState, device_memory, history_is_recording, history_options, history_start,
        history_state, history_stop, mem_get_info,
    };
    #[pymodule_export]
    use super::ipc::{
        MemoryIPCDevice, MemoryIPCHost, MemoryIPCShared, PyIpcEventHandle, PyIpcHandle,
    };
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::machine::{gpu_nodes, group_limit};
    #[pymodule_export]
    use super::memory::{MemoryUSMDevice, MemoryUSMHost, MemoryUSMShared, PyMemory};
    #[pymodule_export]
    use super::pointer::{PyPointerAttributes, pointer_attributes};
    #[pymodule_export]
    use super::pool::{
        PyMemoryPool, PyPoolReport, PyPoolScope, PyPoolStatistics, get_pool, set_memory_limit,
    };
    #[pymodule_export]
    use super::runtime::{PyRuntime, runtime, set_cpu_devices, start};

    #[pymodule_export]
    const TRACEMALLOC_DOMAIN: u32 = super::traced::TRACEMALLOC_DOMAIN;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::interpreter::expect_main()?;
        let py = module.py();
        #[cfg(all(target_os = "linux", not(Py_3_14)))]
        super::parking::park_ended_threads(py);
        super::traced::find_functions(py);
        #[cfg(not(Py_LIMITED_API))]
        {
            super::calls::shorten(py)?;
            super::memory::shorten_views(py);
        }
        super::c_api::add(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
