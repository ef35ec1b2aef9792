//! Divides a layout into chunks of pieces: rows of bytes that one copy transfers.

use std::ops::Range;

use crate::suai::{Layout, Region};

/// The size of a staging chunk in bytes.
pub(super) const CHUNK: usize = 1 << 20;

/// The largest pitch of rows that CUDA copies at once (`CU_DEVICE_ATTRIBUTE_MAX_PITCH` of all its devices).
const LARGEST_PITCH: usize = i32::MAX as usize;

/// The bytes that CUDA transfers in the time that another call takes, and those in the time that another row of a call takes.
const CALL: usize = 32 << 10;
const ROW: usize = 128;

/// The same for another chunk, which has a call, a wait and a copy to or from USM.
const CHUNK_COST: usize = 4 * CALL;

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

impl Piece {
    /// An extent as a piece of one row.
    pub(super) fn of(extent: &Range<isize>) -> Self {
        Self {
            start: extent.start,
            at: 0,
            width: extent.len(),
            rows: 1,
            pitch: extent.len(),
        }
    }

    fn size(&self) -> usize {
        self.width * self.rows
    }

    pub(super) fn extent(&self) -> Range<isize> {
        let length = (self.rows - 1) * self.pitch + self.width;
        self.start..self.start.saturating_add_unsigned(length)
    }
}

/// Pieces of at most [`CHUNK`] bytes together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The number of bytes before this chunk when the elements are packed.
    pub(super) first: usize,
    /// Bytes of all pieces.
    pub(super) size: usize,
    /// Rows of all pieces.
    rows: usize,
    pub(super) pieces: Vec<Piece>,
    /// The bytes from the first of the pieces to the last, if there are at most [`CHUNK`].
    extent: Option<Range<isize>>,
}

impl Chunk {
    /// Whether there is room for a piece, without the loss of an extent that is copied as a whole.
    fn accepts(&self, piece: &Piece) -> bool {
        let fits = self.size + piece.size() <= CHUNK;
        fits && (self.with(piece).is_some() || self.gain() <= CHUNK_COST)
    }

    fn push(&mut self, piece: Piece) {
        self.extent = self.with(&piece);
        self.rows += piece.rows;
        let at = self.size;
        self.size += piece.size();
        self.pieces.push(Piece { at, ..piece });
    }

    /// The extent with another piece.
    fn with(&self, piece: &Piece) -> Option<Range<isize>> {
        let own = piece.extent();
        let extent = if self.pieces.is_empty() {
            own
        } else {
            let before = self.extent.as_ref()?;
            before.start.min(own.start)..before.end.max(own.end)
        };
        (extent.len() <= CHUNK).then_some(extent)
    }

    /// The extent, if it is copied as a whole and the rows are moved on the host: this takes less time than a call for each
    /// piece.
    pub(super) fn whole(&self) -> Option<Range<isize>> {
        self.extent.clone().filter(|_| self.gain() > 0)
    }

    /// How many bytes CUDA transfers in the time that the copy of the extent takes less.
    fn gain(&self) -> usize {
        let extent = self.extent.as_ref().filter(|_| self.rows > 1);
        extent.map_or(0, |extent| {
            let pieces = CALL * (self.pieces.len() - 1) + ROW * self.rows;
            (self.size + pieces).saturating_sub(extent.len())
        })
    }

    /// The same for elements that do not overlap, if there are no gaps between them.
    pub(super) fn whole_without_gaps(&self) -> Option<Range<isize>> {
        self.whole().filter(|extent| extent.len() == self.size)
    }
}

/// The number of staging buffers for the chunks of a layout, which are two or more for two, and the bytes that each needs.
pub(super) fn staging(layout: &Layout) -> (usize, usize) {
    // Elements whose extent has at most CHUNK bytes are one chunk.
    let size = layout.nbytes().max(layout.extent().len());
    (size.div_ceil(CHUNK).min(2), size.min(CHUNK))
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
        while let Some(piece) = pieces.next_if(|piece| chunk.accepts(piece)) {
            chunk.push(piece);
        }
        first += chunk.size;
        (chunk.size > 0).then_some(chunk)
    })
}

/// The pieces of a region, each of at most [`CHUNK`] bytes.
fn pieces(region: Region) -> impl Iterator<Item = Piece> {
    // Rows that are copied with the gaps between them have an extent of at most CHUNK bytes.
    let with_gaps = region.pitch <= region.width + ROW;
    let rows = match CHUNK
        / if with_gaps {
            region.pitch
        } else {
            region.width
        } {
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
