//! A layout as blocks: rows of bytes at regular distances, which a device copies at once.

use super::Layout;

/// Rows of `width` bytes, `rows` of them `pitch` bytes apart, and `slices` of such rows `slice_pitch` bytes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Where the first row begins, in bytes from the layout's pointer.
    pub start: isize,
    /// Where it begins when the elements are packed, in bytes.
    pub packed_start: usize,
    /// Bytes of one row.
    pub width: usize,
    /// Rows in a slice.
    pub rows: usize,
    /// Bytes from row to row; `width` when there is one.
    pub pitch: usize,
    /// Slices.
    pub slices: usize,
    /// Bytes from slice to slice; `pitch * rows` when there is one.
    pub slice_pitch: usize,
}

/// The largest width, count or pitch in a block of several rows: what Level Zero's copies of regions can say.
const LARGEST: usize = u32::MAX as usize;

impl Layout {
    /// Blocks that together hold the elements in row-major order, as few as that order allows. Rows of a block do not
    /// overlap.
    #[must_use]
    pub fn blocks(&self) -> Blocks {
        // Dimensions of one element lead nowhere.
        let mut outer: Vec<(usize, isize)> = self
            .shape()
            .iter()
            .copied()
            .zip(self.byte_strides())
            .filter(|&(size, _)| size != 1)
            .collect();
        let mut width = self.itemsize();
        while let Some(size) = take(&mut outer, |_, stride| stride == width) {
            width *= size;
        }
        let (mut rows, mut pitch) = (1, width);
        if width <= LARGEST
            && let Some(&(_, stride)) = outer.last()
            && let Some(size) = take(&mut outer, |size, stride| {
                stride >= width && stride <= LARGEST && size <= LARGEST
            })
        {
            (rows, pitch) = (size, stride.unsigned_abs());
        }
        let (mut slices, mut slice_pitch) = (1, pitch * rows);
        if rows > 1
            && let Some(&(_, stride)) = outer.last()
            && let Some(size) = take(&mut outer, |size, stride| {
                let nests = stride >= slice_pitch && stride.is_multiple_of(pitch);
                nests && stride <= LARGEST && size <= LARGEST
            })
        {
            (slices, slice_pitch) = (size, stride.unsigned_abs());
        }
        Blocks {
            remaining: outer.iter().map(|&(size, _)| size).product(),
            indices: vec![0; outer.len()],
            outer,
            next: Block {
                start: self.byte_offset(),
                packed_start: 0,
                width,
                rows,
                pitch,
                slices,
                slice_pitch,
            },
        }
    }
}

/// The size of the innermost dimension, taken off if it and its stride, which must not be negative, are `wanted`.
fn take(
    outer: &mut Vec<(usize, isize)>,
    wanted: impl FnOnce(usize, usize) -> bool,
) -> Option<usize> {
    let &(size, stride) = outer.last()?;
    let fits = size != 0 && usize::try_from(stride).is_ok_and(|stride| wanted(size, stride));
    fits.then(|| outer.pop())?.map(|(size, _)| size)
}

/// The blocks of a layout, in row-major order.
#[derive(Debug, Clone)]
pub struct Blocks {
    remaining: usize,
    /// Size and stride in bytes of each dimension outside of the blocks.
    outer: Vec<(usize, isize)>,
    indices: Vec<usize>,
    next: Block,
}

impl Iterator for Blocks {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        self.remaining = self.remaining.checked_sub(1)?;
        let found = self.next;
        self.next.packed_start += found.width * found.rows * found.slices;
        for (index, &(size, stride)) in self.indices.iter_mut().zip(&self.outer).rev() {
            *index += 1;
            self.next.start = self.next.start.wrapping_add(stride);
            if *index < size {
                break;
            }
            self.next.start = self
                .next
                .start
                .wrapping_sub(stride.wrapping_mul(size.cast_signed()));
            *index = 0;
        }
        Some(found)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for Blocks {}
