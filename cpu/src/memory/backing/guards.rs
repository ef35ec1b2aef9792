//! Memory with guard pages around it, for the checker: pieces of large inaccessible mappings, as each allocation takes guard pages
//! and may have only one page of its own.

use std::ops::Range;

use zeusm_process::{Local, Mutex};

use super::mapping::{HUGE_PAGE_THRESHOLD, Mapping};
use crate::check::GUARD;
use crate::system::PAGE;

/// Allocations are aligned to this when the caller does not ask for more: a cache line, and any SIMD vector.
pub const MIN_ALIGNMENT: usize = 64;

/// The length of a large mapping.
const PIECE: usize = 256 << 20;

/// What is left of the last one. The child of a fork begins another one.
static REST: Local<Mutex<Option<Mapping>>> = Local::new();

/// A mapping for `size` bytes aligned to `alignment`, with the range of their pages in it and their offset in the first of these:
/// they end as close to the end of their pages as the alignment permits. `None` when there are none.
pub fn take(size: usize, alignment: usize) -> Option<(Mapping, Range<usize>, usize)> {
    let alignment = alignment.max(MIN_ALIGNMENT);
    let before = GUARD.next_multiple_of(alignment.max(PAGE));
    let length = size.checked_next_multiple_of(PAGE)?;
    let whole = length.checked_add(before)?.checked_add(GUARD)?;
    let offset = (length - size) / alignment * alignment;
    Some((closed(whole, alignment)?, before..before + length, offset))
}

/// `length` bytes of inaccessible pages, aligned to `alignment`; `None` when the system refuses. Large ones are a mapping of
/// their own, with huge pages.
fn closed(length: usize, alignment: usize) -> Option<Mapping> {
    if length >= HUGE_PAGE_THRESHOLD || alignment >= HUGE_PAGE_THRESHOLD {
        return Mapping::closed(length, alignment);
    }
    let length = length.checked_next_multiple_of(PAGE)?;
    let mut rest = REST.get_or_default().lock();
    if let Some(mapping) = rest.as_mut().and_then(|rest| cut(rest, length, alignment)) {
        return Some(mapping);
    }
    // What was left is too short, and is unmapped.
    let mut piece = Mapping::closed(PIECE, PAGE).or_else(|| Mapping::closed(length, alignment))?;
    let mapping = cut(&mut piece, length, alignment);
    *rest = Some(piece);
    mapping
}

/// Takes them off a piece.
fn cut(piece: &mut Mapping, length: usize, alignment: usize) -> Option<Mapping> {
    let start = piece.address().next_multiple_of(alignment.max(PAGE));
    let before = start - piece.address();
    if before + length > piece.length() {
        return None;
    }
    drop(piece.split(before));
    piece.split(length)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_without_overlap() {
        let mut taken: Vec<Mapping> = Vec::new();
        for index in 0..3000_usize {
            let alignment = PAGE << (index % 9);
            let mapping = closed(100_000 + index, alignment).unwrap();
            assert!(mapping.address().is_multiple_of(alignment));
            assert!(mapping.length() >= 100_000 + index);
            taken.push(mapping);
            if index % 3 == 0 {
                taken.swap_remove(index / 3 % taken.len());
            }
        }
        taken.sort_by_key(Mapping::address);
        let disjoint = |pair: &[Mapping]| pair[0].address() + pair[0].length() <= pair[1].address();
        assert!(taken.windows(2).all(disjoint));
        assert!(
            closed(HUGE_PAGE_THRESHOLD, 1 << 30)
                .unwrap()
                .address()
                .is_multiple_of(1 << 30)
        );
    }
}
