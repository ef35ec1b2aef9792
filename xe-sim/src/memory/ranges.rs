//! The bound ranges of an address space, by GPU address.

use std::sync::Arc;

use rangemap::RangeMap;

use super::buffer::Buffer;

/// The width of a GPU address. The driver writes addresses in canonical form, that is sign-extended to 64 bits.
const ADDRESS_BITS: u32 = 48;

/// The memory behind a bound range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    /// A buffer, starting at this offset.
    Buffer(Arc<Buffer>, u64),
    /// User memory, starting at this address.
    User(u64),
    /// A null binding: reads return zeroes, writes are discarded.
    Null,
}

/// What was bound at an address. Later operations may have left parts of it only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    pub(super) address: u64,
    pub(super) backing: Backing,
    pub(super) writable: bool,
}

/// An access to an unbound address or to user memory that is no longer mapped, or a write to a read-only binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("page fault: {access} at {address:#x}")]
pub(crate) struct PageFault {
    pub(crate) address: u64,
    pub(crate) access: &'static str,
}

pub(super) type Ranges = RangeMap<u64, Binding>;

/// A resolved address.
pub(super) enum Place {
    Buffer(*mut u8),
    User(u64),
    Null,
}

pub(super) fn plain(address: u64) -> u64 {
    address & ((1 << ADDRESS_BITS) - 1)
}

/// Resolves an address, with the bytes up to the end of its range, which must be writable if the access writes.
pub(super) fn find(
    ranges: &Ranges,
    address: u64,
    access: &'static str,
    writes: bool,
) -> Result<(Place, u64), PageFault> {
    let address = plain(address);
    let fault = PageFault { address, access };
    let (range, binding) = ranges.get_key_value(&address).ok_or(fault)?;
    if writes && !binding.writable {
        return Err(fault);
    }
    let (inside, length) = (address - binding.address, range.end - address);
    let place = match &binding.backing {
        Backing::Buffer(buffer, offset) => Place::Buffer(buffer.at(offset + inside)),
        Backing::User(start) => Place::User(start + inside),
        Backing::Null => Place::Null,
    };
    Ok((place, length))
}
