//! Memory between processes: `IPCMemoryHandle` in the exporting process, the `MemoryIPC` classes in the importing one.

mod handle;
mod opened;

pub(crate) use handle::PyIpcHandle;
pub(crate) use opened::{MemoryIPCDevice, MemoryIPCHost, MemoryIPCShared};
