//! Divides a layout into chunks of pieces: rows of bytes that one copy transfers.

use crate::suai::{Layout, Region};

/// The size of a staging chunk in bytes.
pub(super) const CHUNK: usize = 4 << 20;

/// The largest pitch of rows that CUDA copies at once (`CU_DEVICE_ATTRIBUTE_MAX_PITCH` of all its devices).
const LARGEST_PITCH: usize = i32::MAX as usize;

/// Rows in the array, which follow each other without gaps in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// The offset of the first row from the array's pointer, in bytes.
    pub(super) start: isize,
    /// The offset in the chunk, in bytes.
    pub(super) at: usize,
    /// Bytes of one row.
    pub(super) width: usize,
    /// The number of rows.
    pub(super) rows: usize,
    /// The pitch of the rows in bytes.
    pub(super) pitch: usize,
}

/// Pieces of at most [`CHUNK`] bytes together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The number of bytes before this chunk when the elements are packed.
    pub(super) first: usize,
    /// Bytes of all pieces.
    pub(super) size: usize,
    pub(super) pieces: Vec<Piece>,
}

/// The chunks of a layout in row-major order.
pub(super) fn chunks(layout: &Layout) -> impl Iterator<Item = Chunk> {
    let mut pieces = layout.regions().flat_map(pieces).peekable();
    let mut first = 0;
    std::iter::from_fn(move || {
        let mut chunk = Chunk {
            first,
            ..Chunk::default()
        };
        while let Some(piece) =
            pieces.next_if(|piece| chunk.size + piece.width * piece.rows <= CHUNK)
        {
            chunk.pieces.push(Piece {
                at: chunk.size,
                ..piece
            });
            chunk.size += piece.width * piece.rows;
        }
        first += chunk.size;
        (chunk.size > 0).then_some(chunk)
    })
}

/// The pieces of a region, each of at most [`CHUNK`] bytes.
fn pieces(region: Region) -> impl Iterator<Item = Piece> {
    let rows = match CHUNK / region.width {
        0 => 1,
        _ if region.pitch > LARGEST_PITCH => 1,
        rows => rows.min(region.rows),
    };
    let Region {
        start,
        width,
        pitch,
        slice_pitch,
        ..
    } = region;
    (0..region.slices).flat_map(move |slice| {
        (0..region.rows).step_by(rows).flat_map(move |row| {
            let rows = rows.min(region.rows - row);
            let before = start + (slice * slice_pitch + row * pitch).cast_signed();
            (0..width).step_by(CHUNK).map(move |column| Piece {
                start: before + column.cast_signed(),
                at: 0,
                width: CHUNK.min(width - column),
                rows,
                pitch,
            })
        })
    })
}
