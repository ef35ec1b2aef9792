//! Divides a layout into chunks of pieces: rows of bytes that one copy transfers.

use std::ops::Range;

use crate::suai::{Layout, Region};

/// The size of a staging chunk in bytes.
pub(super) const CHUNK: usize = 1 << 20;

/// The largest pitch of rows that CUDA copies at once (`CU_DEVICE_ATTRIBUTE_MAX_PITCH` of all its devices).
const LARGEST_PITCH: usize = i32::MAX as usize;

/// The largest ratio of an extent to the bytes in it that are elements, at which the extent is copied as a whole.
const LARGEST_SPREAD: usize = 16;

/// The number of pieces, or of rows, that CUDA copies as fast as their extent.
const FEW: usize = 8;

/// The width of rows in bytes from which CUDA copies rows as fast as their extent.
const NARROW: usize = 256;

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
    pub(super) pieces: Vec<Piece>,
    /// The bytes from the first of the pieces to the last, if there are at most [`CHUNK`]. While chunks are made, empty before
    /// the first piece.
    pub(super) extent: Option<Range<isize>>,
}

impl Chunk {
    fn new(first: usize) -> Self {
        Self {
            first,
            extent: Some(0..0),
            ..Self::default()
        }
    }

    /// Whether there is room for a piece. A dense chunk ends where its extent would become too long.
    fn accepts(&self, piece: &Piece) -> bool {
        self.size + piece.size() <= CHUNK && (!self.is_dense() || self.with(piece).is_some())
    }

    fn push(&mut self, piece: Piece) {
        self.extent = self.with(&piece);
        self.size += piece.size();
        self.pieces.push(Piece {
            at: self.size - piece.size(),
            ..piece
        });
    }

    /// The extent with another piece.
    fn with(&self, piece: &Piece) -> Option<Range<isize>> {
        let (before, own) = (self.extent.clone()?, piece.extent());
        let extent = if before.is_empty() {
            own
        } else {
            before.start.min(own.start)..before.end.max(own.end)
        };
        (extent.len() <= CHUNK).then_some(extent)
    }

    /// Whether there are few gaps between the pieces' bytes.
    fn is_dense(&self) -> bool {
        let dense = |extent: &Range<isize>| extent.len() <= LARGEST_SPREAD * self.size;
        !self.pieces.is_empty() && self.extent.as_ref().is_some_and(dense)
    }

    /// The extent, if to copy it as a whole and move the rows on the host takes less time than copies of the pieces by CUDA, which
    /// takes some microseconds for each, and some nanoseconds for each of their rows. With `exactly`, it has as many bytes as the
    /// pieces together.
    pub(super) fn whole(&self, exactly: bool) -> Option<Range<isize>> {
        let rows: usize = self.pieces.iter().map(|piece| piece.rows).sum();
        let is_divided = self.pieces.len() > FEW || (rows > FEW && self.size / rows < NARROW);
        let extent = self
            .extent
            .clone()
            .filter(|_| is_divided && self.is_dense())?;
        (!exactly || extent.len() == self.size).then_some(extent)
    }
}

/// Whether the strides show that no elements overlap: each step is at least as long as what the shorter steps span.
pub(super) fn is_distinct(layout: &Layout) -> bool {
    let mut steps: Vec<(usize, usize)> = layout
        .byte_strides()
        .into_iter()
        .map(isize::unsigned_abs)
        .zip(layout.shape().iter().copied())
        .filter(|&(_, size)| size > 1)
        .collect();
    steps.sort_unstable();
    let mut span = layout.itemsize();
    steps.into_iter().all(|(step, size)| {
        let fits = step >= span;
        span = span.saturating_add(step.saturating_mul(size - 1));
        fits
    })
}

/// The chunks of a layout in row-major order.
pub(super) fn chunks(layout: &Layout) -> impl Iterator<Item = Chunk> {
    let mut pieces = layout.regions().flat_map(pieces).peekable();
    let mut first = 0;
    std::iter::from_fn(move || {
        let mut chunk = Chunk::new(first);
        while let Some(piece) = pieces.next_if(|piece| chunk.accepts(piece)) {
            chunk.push(piece);
        }
        first += chunk.size;
        (chunk.size > 0).then_some(chunk)
    })
}

/// The pieces of a region, each of at most [`CHUNK`] bytes.
fn pieces(region: Region) -> impl Iterator<Item = Piece> {
    let is_dense = region.pitch <= LARGEST_SPREAD * region.width;
    let rows = match CHUNK / if is_dense { region.pitch } else { region.width } {
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
