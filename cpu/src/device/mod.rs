//! The devices, which share the machine's processors and memory, and their properties.
//!
//! `layout` reads which devices are presented, with `mask`; `list` makes them.

mod compute;
mod entry;
mod layout;
mod list;
mod mask;
mod memory;
mod properties;
mod queues;

pub use compute::{compute, image, module, vector_width};
pub use entry::{
    can_access_peer, fabric_vertex, fabric_vertices, get, global_timestamps, p2p, pci, root_device,
    status, sub_devices,
};
pub use list::{
    Chosen, Device, check_variables, find, gpus, has_system_atomics, present, with_uuid,
};
pub use memory::{
    cache, check_external, check_handle_type, external_memory, memory, memory_access,
};
pub use properties::{MUTABLE_FLAGS, VENDOR, architecture, device_properties};
pub use queues::{MAX_FILL_PATTERN, QueueGroup, check_queue, queue_groups};
