//! The bound ranges of an address space, by GPU address.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::buffer::Buffer;

/// The width of a GPU address. The driver writes addresses in canonical form, that is sign-extended to 64 bits.
const ADDRESS_BITS: u32 = 48;

/// The memory behind a bound range.
#[derive(Clone, Debug)]
pub(crate) enum Backing {
    /// A buffer, starting at this offset.
    Buffer(Arc<Buffer>, u64),
    /// User memory, starting at this address.
    User(u64),
    /// A null binding: reads return zeroes, writes are discarded.
    Null,
}

impl Backing {
    /// The same backing, advanced by `bytes`.
    fn after(&self, bytes: u64) -> Self {
        match self {
            Self::Buffer(buffer, offset) => Self::Buffer(Arc::clone(buffer), offset + bytes),
            Self::User(address) => Self::User(address + bytes),
            Self::Null => Self::Null,
        }
    }
}

#[derive(Debug)]
pub(super) struct Range {
    pub(super) length: u64,
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

pub(super) type Ranges = BTreeMap<u64, Range>;

/// A resolved address, and the number of contiguous bytes from there.
pub(super) enum Place {
    Buffer(*mut u8, u64),
    User(u64, u64),
    Null(u64),
}

impl Place {
    pub(super) fn length(&self) -> u64 {
        match *self {
            Self::Buffer(_, length) | Self::User(_, length) | Self::Null(length) => length,
        }
    }
}

pub(super) fn plain(address: u64) -> u64 {
    address & ((1 << ADDRESS_BITS) - 1)
}

/// The target of an atomic operation, which must be naturally aligned memory of a buffer.
pub(super) fn atomic_place<T>(ranges: &Ranges, address: u64) -> Result<*mut T, PageFault> {
    let access = "atomic operation";
    match find(ranges, address, access, true)? {
        Place::Buffer(at, length)
            if length >= size_of::<T>() as u64 && at.cast::<T>().is_aligned() =>
        {
            Ok(at.cast())
        }
        _ => Err(PageFault { address, access }),
    }
}

/// Resolves an address up to the end of its range, which must be writable if the access writes.
pub(super) fn find(
    ranges: &Ranges,
    address: u64,
    access: &'static str,
    writes: bool,
) -> Result<Place, PageFault> {
    let address = plain(address);
    let fault = PageFault { address, access };
    let (start, range) = ranges.range(..=address).next_back().ok_or(fault)?;
    let inside = address - start;
    if inside >= range.length || (writes && !range.writable) {
        return Err(fault);
    }
    let length = range.length - inside;
    Ok(match &range.backing {
        Backing::Buffer(buffer, offset) => Place::Buffer(buffer.at(offset + inside), length),
        Backing::User(start) => Place::User(start + inside, length),
        Backing::Null => Place::Null(length),
    })
}

/// Removes an address range from the bindings; partially covered bindings keep their head or tail. Returns the removed
/// bindings, so that the caller can drop them without the lock.
pub(super) fn cut(ranges: &mut Ranges, start: u64, length: u64) -> Vec<Range> {
    let end = start.saturating_add(length);
    let mut dropped = Vec::new();
    let first = ranges
        .range(..start)
        .next_back()
        .filter(|(at, range)| *at + range.length > start)
        .map(|(at, _)| *at);
    let touched: Vec<u64> = first
        .into_iter()
        .chain(ranges.range(start..end).map(|(at, _)| *at))
        .collect();
    for at in touched {
        let Some(range) = ranges.remove(&at) else {
            continue;
        };
        if at < start {
            let head = Range {
                length: start - at,
                backing: range.backing.clone(),
                writable: range.writable,
            };
            ranges.insert(at, head);
        }
        if at + range.length > end {
            let tail = Range {
                length: at + range.length - end,
                backing: range.backing.after(end - at),
                writable: range.writable,
            };
            ranges.insert(end, tail);
        }
        dropped.push(range);
    }
    dropped
}
