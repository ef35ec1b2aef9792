//! USM: memory for the host, for one device or for both.
//!
//! [`Memory<Host>`](Memory), [`Memory<Shared>`](Memory) and [`Memory<Device>`](Memory) own an [`Allocation`] each. Only the
//! first two have slices, as the host cannot access device memory.
//!
//! Source: Level Zero specification, "Core programming guide", Memory and images.

mod allocation;
mod attributes;
mod budget;
mod context_map;
mod default_pools;
mod exports;
mod in_place;
mod limits;
mod mappings;
mod memory;
mod provider;
mod virtual_memory;

#[cfg(target_os = "linux")]
use rustix::param::page_size;
/// That of Windows on 64-bit processors.
#[cfg(windows)]
const fn page_size() -> usize {
    4096
}

pub use allocation::Allocation;
pub use attributes::PointerAttributes;
pub use context_map::{held, is_in_place, is_suspended};
pub use default_pools::pools_enabled;
pub use memory::{DeviceMemory, HostMemory, Memory, SharedMemory};
pub use provider::LevelZeroProvider;
pub(crate) use virtual_memory::{Saved, pointer};

pub use crate::kind::{Device, Host, HostAccessible, Kind, Shared, UsmKind};
pub use crate::pool::LARGEST_ALIGNMENT;
