//! Memory and events between processes: `IPCMemoryHandle` in the exporting process, the `MemoryIPC` classes in the importing one,
//! and `IPCEventHandle`.

mod event_handle;
mod handle;
mod opened;

pub(crate) use event_handle::PyIpcEventHandle;
pub(crate) use handle::PyIpcHandle;
pub(crate) use opened::{MemoryIPCDevice, MemoryIPCHost, MemoryIPCShared};
