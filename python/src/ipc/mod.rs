//! Memory between processes: `IPCMemoryHandle` in the exporting process, the `MemoryIPC` classes in the importing one.

mod functions;
mod handle;
mod opened;

pub(crate) use functions::{close_mem_handle, get_mem_handle, open_mem_handle};
pub(crate) use handle::PyIpcHandle;
pub(crate) use opened::{MemoryIPCDevice, MemoryIPCHost, MemoryIPCShared};
