//! USM: memory that the host, one device or both may touch.
//!
//! [`Memory<Host>`](Memory), [`Memory<Shared>`](Memory) and [`Memory<Device>`](Memory) own an [`Allocation`] each; only
//! the first two are slices, because the host must not look at device memory.
//!
//! Source: Level Zero specification, "Core programming guide", Memory and images.

mod allocation;
mod attributes;
mod kind;
pub(crate) mod limits;
mod memory;
pub(crate) mod origin;

pub use allocation::{Allocation, LARGEST_ALIGNMENT};
pub use attributes::PointerAttributes;
pub use kind::{Device, Host, HostAccessible, Kind, Shared, UsmKind};
pub use memory::{DeviceMemory, HostMemory, Memory, SharedMemory};
