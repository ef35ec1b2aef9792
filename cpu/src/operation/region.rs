//! Copying a box out of one two- or three-dimensional array into another.

use std::ops::Range;
use std::ptr;

use level_zero_sys as sys;

use super::split::Split;
use crate::abi::result::{ZeResult, ensure};
use crate::check::{self, Uses};
use crate::engine::{Kind, Operation, Pins};
use crate::memory::Span;

/// A box in an array: bytes, rows and slices.
#[derive(Clone, Copy, Debug)]
pub struct Cuboid {
    /// Its first byte.
    pub origin: [usize; 3],
    /// Its size.
    pub size: [usize; 3],
}

impl From<&sys::ze_copy_region_t> for Cuboid {
    fn from(region: &sys::ze_copy_region_t) -> Self {
        let origin = [region.originX, region.originY, region.originZ];
        // A height or depth of 0 means that the box does not have that dimension.
        let size = [region.width, region.height.max(1), region.depth.max(1)];
        Self {
            origin: origin.map(|offset| offset as usize),
            size: size.map(|extent| extent as usize),
        }
    }
}

/// The layout of an array in memory, and the box in it.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Bytes from row to row; 0 means that rows are as wide as the box.
    pub pitch: usize,
    /// Bytes from slice to slice; 0 means that slices are as high as the box.
    pub slice_pitch: usize,
    /// The box.
    pub region: Cuboid,
}

/// A box in memory: rows of bytes at increasing addresses.
#[derive(Debug)]
pub struct Region {
    span: Span,
    /// With pitches that are not 0, unless there are no bytes.
    layout: Layout,
}

impl Layout {
    /// The layout with the pitches that it leaves out, and the box's bytes from the start of the array. `None` for sizes that do
    /// not fit, and for rows or slices that overlap each other.
    fn measure(&self) -> Option<(Self, Range<usize>)> {
        let ([x, y, z], [width, height, depth]) = (self.region.origin, self.region.size);
        let pitch = if self.pitch == 0 { width } else { self.pitch };
        let slice_pitch = match self.slice_pitch {
            0 => pitch.checked_mul(height)?,
            bytes => bytes,
        };
        let slice = (height - 1).checked_mul(pitch)?.checked_add(width)?;
        let length = (depth - 1).checked_mul(slice_pitch)?.checked_add(slice)?;
        let start = z
            .checked_mul(slice_pitch)?
            .checked_add(y.checked_mul(pitch)?)?
            .checked_add(x)?;
        let end = start.checked_add(length)?;
        let disjoint = (height == 1 || pitch >= width) && (depth == 1 || slice_pitch >= slice);
        let layout = Self {
            pitch,
            slice_pitch,
            ..*self
        };
        let bytes = if width == 0 { 0..0 } else { start..end };
        disjoint.then_some((layout, bytes))
    }
}

impl Region {
    /// Finds the box in the array at `base`.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_SIZE` when rows or slices overlap each other, the box leaves its allocation or is
    /// larger than memory can be, and the errors of [`Span::new`].
    pub fn new(base: usize, layout: &Layout) -> ZeResult<Self> {
        let (_, bytes) = layout.measure().ok_or(sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
        // From the base on, as an origin beyond the allocation could lie in another one.
        Self::within(&Span::new(base, bytes.end)?, layout)
    }

    /// Finds the box in the array that `array` holds.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_SIZE` when rows or slices overlap each other, or the box leaves the array.
    pub fn within(array: &Span, layout: &Layout) -> ZeResult<Self> {
        let (layout, bytes) = layout
            .measure()
            .filter(|(_, bytes)| bytes.end <= array.length())
            .ok_or(sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
        Ok(Self {
            span: array.part(bytes.start, bytes.len()),
            layout,
        })
    }

    /// The bytes of a row.
    fn width(&self) -> usize {
        self.layout.region.size[0]
    }

    /// The rows of all slices; none if they have no bytes, as no memory limits their number then.
    fn rows(&self) -> usize {
        match self.layout.region.size {
            [0, ..] => 0,
            [_, height, depth] => height * depth,
        }
    }

    /// Address of row `index`, counted through all slices.
    fn row(&self, index: usize) -> usize {
        let (layout, height) = (&self.layout, self.layout.region.size[1]);
        self.span.address() + index / height * layout.slice_pitch + index % height * layout.pitch
    }

    fn overlaps(&self, other: &Self) -> bool {
        if !self.span.overlaps(&other.span) {
            return false;
        }
        // The rows of both boxes are in order of addresses, so one pass over both finds any pair that overlaps.
        let (mut mine, mut theirs) = (0, 0);
        while mine < self.rows() && theirs < other.rows() {
            let (left, right) = (self.row(mine), other.row(theirs));
            if left + self.width() <= right {
                mine += 1;
            } else if right + other.width() <= left {
                theirs += 1;
            } else {
                return true;
            }
        }
        false
    }
}

/// Copies one box to another of the same size.
#[derive(Debug)]
pub struct RegionCopy {
    to: Region,
    from: Region,
    rows_in_part: usize,
    kind: Kind,
}

impl RegionCopy {
    /// A copy between boxes of one size.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_SIZE` when their sizes differ, `ZE_RESULT_ERROR_OVERLAPPING_REGIONS` when they overlap.
    pub fn new(to: Region, from: Region) -> ZeResult<Self> {
        ensure(
            to.layout.region.size == from.layout.region.size,
            sys::ZE_RESULT_ERROR_INVALID_SIZE,
        )?;
        ensure(
            !to.overlaps(&from),
            sys::ZE_RESULT_ERROR_OVERLAPPING_REGIONS,
        )?;
        let split = Split::new(to.width().saturating_mul(to.rows()));
        let rows_in_part = to.rows().div_ceil(split.parts().max(1)).max(1);
        let kind = split.kind();
        Ok(Self {
            to,
            from,
            rows_in_part,
            kind,
        })
    }
}

impl Operation for RegionCopy {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn pin(&self) -> ZeResult<Pins> {
        Ok([self.to.span.pin()?, self.from.span.pin()?]
            .into_iter()
            .flatten()
            .collect())
    }

    fn uses(&self) -> Uses {
        let rows = |region: &Region| {
            let row = |index| region.row(index)..region.row(index) + region.width();
            (0..region.rows()).map(row).collect()
        };
        Uses {
            what: format!(
                "a copy of {} rows of {} bytes",
                self.to.rows(),
                self.to.width()
            ),
            reads: rows(&self.from),
            writes: rows(&self.to),
            ..Uses::default()
        }
    }

    fn parts(&self) -> usize {
        self.to.rows().div_ceil(self.rows_in_part)
    }

    fn run(&self, part: usize) -> ZeResult {
        let first = part * self.rows_in_part;
        for row in first..(first + self.rows_in_part).min(self.to.rows()) {
            let (from, to) = (self.from.row(row), self.to.row(row));
            // SAFETY: the caller of the append vouches for both boxes, as the specification demands; boxes in an
            // allocation lie inside of it, pins keep it alive, and the boxes do not overlap.
            unsafe {
                check::copying(from, self.to.width(), to);
                ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, self.to.width());
            }
        }
        Ok(())
    }
}
