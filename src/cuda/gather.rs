//! Moves the rows of a chunk between their places in the array's extent and their packed form, on the host.

use std::ffi::c_void;
use std::ptr;

use super::chunks::Piece;

/// Rows on the host.
#[derive(Clone, Copy)]
struct Rows {
    first: *mut u8,
    pitch: usize,
}

/// Copies the pieces between `extent`, whose first byte is at the offset `start` from the array's pointer, and `packed`: to the
/// places in the extent if `to_extent`.
///
/// # Safety
/// Both must be valid for the pieces' bytes, and must not overlap.
pub(super) unsafe fn move_pieces(
    pieces: &[Piece],
    start: isize,
    extent: *mut c_void,
    packed: *mut c_void,
    to_extent: bool,
) {
    for piece in pieces {
        let spread = Rows {
            first: extent.cast::<u8>().wrapping_offset(piece.start - start),
            pitch: piece.pitch,
        };
        let together = Rows {
            first: packed.cast::<u8>().wrapping_add(piece.at),
            pitch: piece.width,
        };
        let (from, to) = if to_extent {
            (together, spread)
        } else {
            (spread, together)
        };
        // SAFETY: the caller guarantees the validity.
        unsafe { copy(from, to, piece) };
    }
}

/// Copies the rows of a piece. The common widths are constants, so that a row is one move.
///
/// # Safety
/// Both must be valid for the rows, and must not overlap.
unsafe fn copy(from: Rows, to: Rows, piece: &Piece) {
    // SAFETY: the caller guarantees the validity; byte arrays have no alignment.
    unsafe {
        match piece.width {
            1 => rows::<1>(from, to, piece.rows),
            2 => rows::<2>(from, to, piece.rows),
            4 => rows::<4>(from, to, piece.rows),
            8 => rows::<8>(from, to, piece.rows),
            16 => rows::<16>(from, to, piece.rows),
            width => {
                for row in 0..piece.rows {
                    let (from, to) = (from.row(row), to.row(row));
                    ptr::copy_nonoverlapping(from, to, width);
                }
            }
        }
    }
}

/// # Safety
/// As for [`copy`].
unsafe fn rows<const WIDTH: usize>(from: Rows, to: Rows, count: usize) {
    for row in 0..count {
        let (from, to) = (from.row(row), to.row(row));
        // SAFETY: the caller guarantees the validity.
        unsafe { ptr::copy_nonoverlapping(from.cast::<[u8; WIDTH]>(), to.cast(), 1) };
    }
}

impl Rows {
    fn row(self, index: usize) -> *mut u8 {
        self.first.wrapping_add(index * self.pitch)
    }
}
