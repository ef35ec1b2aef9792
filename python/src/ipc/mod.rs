//! Memory between processes: `IPCMemoryHandle` on the side that owns the memory, the `MemoryIPC` classes on the other.

mod functions;
mod handle;
mod opened;

pub(super) use functions::{close_mem_handle, get_mem_handle, open_mem_handle};
pub(super) use handle::PyIpcHandle;
pub(super) use opened::{MemoryIPCDevice, MemoryIPCHost, MemoryIPCShared};
