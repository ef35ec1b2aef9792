//! The entry points of memory: `zeMemAlloc...`, `zeMemFree`, `zeMemGet...` and those of IPC.

mod allocate;
mod atomic_access;
mod free;
#[cfg(target_os = "linux")]
pub mod ipc;
#[cfg(target_os = "linux")]
#[path = "descriptors.rs"]
mod platform;
#[cfg(windows)]
#[path = "no_descriptors.rs"]
mod platform;
mod query;

pub use allocate::{device, host, shared};
pub use atomic_access::{atomic_access, set_atomic_access};
pub use free::{free, free_with_policy};
pub use query::{address_range, properties};
