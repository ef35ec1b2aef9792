//! Divides a layout into chunks of pieces: rows of bytes that one copy transfers.

use std::ops::Range;

use crate::suai::{Layout, Region};

/// The most bytes of a chunk, and of its extent if that is copied as a whole.
pub(super) const CHUNK: usize = 1 << 20;

/// The largest pitch of rows that CUDA copies at once (`CU_DEVICE_ATTRIBUTE_MAX_PITCH` of all its devices).
const LARGEST_PITCH: usize = i32::MAX as usize;

/// The largest gap between rows that are copied with the gaps: CUDA transfers it in the time that another row takes.
const GAP: usize = 128;

/// Rows in the array, which follow each other without gaps in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// The offset of the first row from the array's pointer, in bytes.
    pub(super) start: isize,
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
            width: extent.len(),
            rows: 1,
            pitch: extent.len(),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.width * self.rows
    }

    fn extent(&self) -> Range<isize> {
        let length = (self.rows - 1) * self.pitch + self.width;
        self.start..self.start.saturating_add_unsigned(length)
    }
}

/// Pieces of at most [`CHUNK`] bytes together: one, or several in an extent of at most as many bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The number of bytes before this chunk when the elements are packed.
    pub(super) first: usize,
    /// Bytes of all pieces.
    pub(super) size: usize,
    pub(super) pieces: Vec<Piece>,
    /// The bytes from the first of the pieces to the last.
    extent: Range<isize>,
}

impl Chunk {
    fn extent_with(&self, piece: &Piece) -> Range<isize> {
        let own = piece.extent();
        if self.pieces.is_empty() {
            return own;
        }
        self.extent.start.min(own.start)..self.extent.end.max(own.end)
    }

    fn accepts(&self, piece: &Piece) -> bool {
        let fits = self.size + piece.size() <= CHUNK && self.extent_with(piece).len() <= CHUNK;
        self.pieces.is_empty() || fits
    }

    fn push(&mut self, piece: Piece) {
        self.extent = self.extent_with(&piece);
        self.size += piece.size();
        self.pieces.push(piece);
    }

    /// The extent, if it is copied as a whole and the rows are moved on the host, in place of a copy for each piece.
    pub(super) fn whole(&self) -> Option<Range<isize>> {
        let is_whole = match self.pieces.as_slice() {
            [piece] => piece.rows > 1 && piece.pitch <= piece.width + GAP,
            _ => true,
        };
        is_whole.then(|| self.extent.clone())
    }

    /// The bytes of each row, in the extent and among the packed elements.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let mut at = 0;
        let starts = self.pieces.iter().flat_map(|piece| {
            let first = piece.start.abs_diff(self.extent.start);
            (0..piece.rows).map(move |row| (first + row * piece.pitch, piece.width))
        });
        starts.map(move |(start, width)| {
            let packed = at..at + width;
            at += width;
            (start..start + width, packed)
        })
    }
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
    let Region {
        start,
        width,
        pitch,
        slice_pitch,
        ..
    } = region;
    // Rows that are copied with the gaps between them have an extent of at most CHUNK bytes.
    let step = if pitch <= width + GAP { pitch } else { width };
    let rows = match CHUNK / step {
        0 => 1,
        _ if pitch > LARGEST_PITCH => 1,
        rows => rows.min(region.rows),
    };
    (0..region.slices).flat_map(move |slice| {
        (0..region.rows).step_by(rows).flat_map(move |row| {
            let rows = rows.min(region.rows - row);
            let before = start + (slice * slice_pitch + row * pitch).cast_signed();
            (0..width).step_by(CHUNK).map(move |column| Piece {
                start: before + column.cast_signed(),
                width: CHUNK.min(width - column),
                rows,
                pitch,
            })
        })
    })
}
