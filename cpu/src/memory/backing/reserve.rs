//! Addresses for the checker's allocations: inaccessible pages, mapped in large pieces, as each allocation takes guard pages
//! and may have only one page of its own.

use zeusm_process::{Local, Mutex};

use super::mapping::{HUGE_PAGE_THRESHOLD, Mapping};
use crate::system::PAGE;

/// The length of a piece.
const PIECE: usize = 256 << 20;

/// What is left of the last piece. The child of a fork begins another one.
static REST: Local<Mutex<Option<Mapping>>> = Local::new();

/// `length` bytes of inaccessible pages, aligned to `alignment`; `None` when the system refuses. Large ones are a mapping of
/// their own, with huge pages.
pub fn take(length: usize, alignment: usize) -> Option<Mapping> {
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
            let mapping = take(100_000 + index, alignment).unwrap();
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
            take(HUGE_PAGE_THRESHOLD, 1 << 30)
                .unwrap()
                .address()
                .is_multiple_of(1 << 30)
        );
    }
}
