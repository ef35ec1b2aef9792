//! USM: memory that the host, one device or both may touch.
//!
//! [`Memory<Host>`](Memory), [`Memory<Shared>`](Memory) and [`Memory<Device>`](Memory) own an [`Allocation`] each; only
//! the first two are slices, because the host must not look at device memory.
//!
//! Source: Level Zero specification, "Core programming guide", Memory and images.

mod allocation;
mod attributes;
mod limits;
mod memory;
mod origin;
mod pools;
mod provider;

pub use allocation::Allocation;
pub use attributes::PointerAttributes;
pub use memory::{DeviceMemory, HostMemory, Memory, SharedMemory};
pub use pools::{POOL_VARIABLE, is_default};
pub use provider::LevelZero;

pub use crate::kind::{Device, Host, HostAccessible, Kind, Shared, UsmKind};
pub use crate::pool::LARGEST_ALIGNMENT;
