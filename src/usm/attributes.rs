//! What is known of a pointer.

use super::UsmKind;
use crate::device::Device;

/// The allocation that a pointer lies in, by Level Zero's word; of memory that a pool divided, base and size by the
/// pool's.
///
/// Source: Level Zero specification, `zeMemGetAllocProperties` and `zeMemGetAddressRange`.
#[derive(Clone, Debug)]
pub struct PointerAttributes {
    /// The kind of memory.
    pub kind: UsmKind,
    /// Where the allocation begins.
    pub base: usize,
    /// How many bytes it has.
    pub size: usize,
    /// Level Zero's number of it, which no other of its allocations ever has; blocks of a pool may share one.
    pub id: u64,
    /// The device it was allocated for; `None` for memory of the host.
    pub device: Option<Device>,
}
