//! What Level Zero says of a pointer.

use super::UsmKind;
use crate::device::Device;

/// The allocation that a pointer lies in, by Level Zero's word.
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
    /// A number that no other allocation of the process ever has.
    pub id: u64,
    /// The device it was allocated for; `None` for memory of the host.
    pub device: Option<Device>,
}
