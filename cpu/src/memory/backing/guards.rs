//! Memory with guard pages around it, for the checker.

use std::ops::Range;

use super::mapping::Mapping;
use crate::check::GUARD;
use crate::system::PAGE;

/// Allocations are aligned to this when the caller does not ask for more: a cache line, and any SIMD vector.
pub const MIN_ALIGNMENT: usize = 64;

/// An inaccessible mapping for `size` bytes aligned to `alignment`, with the range of their pages in it and their offset in the first
/// of these: they end as close to the end of their pages as the alignment permits. `None` when there are none.
pub fn take(size: usize, alignment: usize) -> Option<(Mapping, Range<usize>, usize)> {
    let alignment = alignment.max(MIN_ALIGNMENT);
    let before = GUARD.next_multiple_of(alignment.max(PAGE));
    let length = size.checked_next_multiple_of(PAGE)?;
    let whole = length.checked_add(before)?.checked_add(GUARD)?;
    let offset = (length - size) / alignment * alignment;
    let mapping = Mapping::closed(whole, alignment)?;
    Some((mapping, before..before + length, offset))
}
