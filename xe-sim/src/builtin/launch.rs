//! What a kernel is executed with.

use super::info::Info;
use crate::memory::AddressSpace;

/// A kernel's work items and arguments.
pub(super) struct Launch<'a> {
    pub(super) space: &'a AddressSpace,
    /// Work items per group and in total, by dimension.
    pub(super) local: [u64; 3],
    pub(super) global: [u64; 3],
    pub(super) info: &'a Info,
    pub(super) payload: Vec<u8>,
}

impl Launch<'_> {
    /// An argument as a number or an address.
    pub(super) fn argument(&self, index: u32) -> u64 {
        self.part(index, 0, 1)
    }

    /// One component of a vector argument.
    pub(super) fn part(&self, index: u32, part: usize, parts: usize) -> u64 {
        let Some(slot) = self.info.argument(index) else {
            return 0; // The compiler removes unused arguments.
        };
        let size = slot.size / parts;
        number(&self.payload, slot.offset + part * size, size)
    }
}

/// A number of at most 64 bits in a kernel's argument data.
pub(super) fn number(payload: &[u8], offset: usize, size: usize) -> u64 {
    let mut bytes = [0; 8];
    let size = size.min(8);
    if let Some(found) = payload.get(offset..offset + size) {
        bytes[..size].copy_from_slice(found);
    }
    u64::from_le_bytes(bytes)
}
