//! Divides a layout into regions: rows of bytes at regular pitches, each of which a device copies in one operation.

use super::Layout;

/// A three-dimensional region: rows of `width` bytes at a distance of `pitch` bytes, in slices at a distance of
/// `slice_pitch` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The offset of the first row from the layout's pointer, in bytes.
    pub start: isize,
    /// Its offset when the elements are packed, in bytes.
    pub packed_start: usize,
    /// Bytes of one row.
    pub width: usize,
    /// The number of rows in a slice.
    pub rows: usize,
    /// The pitch of the rows in bytes; `width` when there is one row.
    pub pitch: usize,
    /// The number of slices.
    pub slices: usize,
    /// The pitch of the slices in bytes; `pitch * rows` when there is one slice.
    pub slice_pitch: usize,
}

/// The largest width, count or pitch of a region with several rows, which is that of Level Zero's region copies.
const LARGEST: usize = u32::MAX as usize;

impl Layout {
    /// Divides the elements in row-major order into as few regions as possible. The rows of a region do not overlap.
    #[must_use]
    pub fn regions(&self) -> Regions {
        // The stride of a dimension of size 1 is irrelevant.
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
        Regions {
            remaining: outer.iter().map(|&(size, _)| size).product(),
            indices: vec![0; outer.len()],
            outer,
            next: Region {
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

/// Removes the innermost dimension and returns its size, if its stride is not negative and `wanted` accepts both.
fn take(
    outer: &mut Vec<(usize, isize)>,
    wanted: impl FnOnce(usize, usize) -> bool,
) -> Option<usize> {
    let &(size, stride) = outer.last()?;
    let fits = size != 0 && usize::try_from(stride).is_ok_and(|stride| wanted(size, stride));
    fits.then(|| outer.pop())?.map(|(size, _)| size)
}

/// The regions of a layout, in row-major order.
#[derive(Debug, Clone)]
pub struct Regions {
    remaining: usize,
    /// Size and stride in bytes of each dimension outside of the regions.
    outer: Vec<(usize, isize)>,
    indices: Vec<usize>,
    next: Region,
}

impl Iterator for Regions {
    type Item = Region;

    fn next(&mut self) -> Option<Region> {
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

impl ExactSizeIterator for Regions {}
