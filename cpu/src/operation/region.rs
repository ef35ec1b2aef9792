//! Copying a box out of one two- or three-dimensional array into another.

use std::ptr;

use level_zero_sys as sys;

use super::split::Split;
use crate::abi::result::{ZeResult, ensure};
use crate::check::{self, Uses};
use crate::engine::{Kind, Operation, Pins};
use crate::memory::Span;

/// The layout of an array in memory, and the box in it.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Address of the array.
    pub base: usize,
    /// Bytes from row to row; 0 means that rows are as wide as the box.
    pub pitch: u32,
    /// Bytes from slice to slice; 0 means that slices are as high as the box.
    pub slice_pitch: u32,
    /// The box's origin and size.
    pub region: sys::ze_copy_region_t,
}

/// A box in memory: rows of `width` bytes at increasing addresses.
#[derive(Debug)]
pub struct Region {
    span: Span,
    width: usize,
    height: usize,
    depth: usize,
    pitch: usize,
    slice_pitch: usize,
}

impl Region {
    /// Finds the box in memory.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_SIZE` when rows or slices overlap each other, the box leaves its allocation or is
    /// larger than memory can be, and the errors of [`Span::new`].
    pub fn new(layout: &Layout) -> ZeResult<Self> {
        Self::measure(layout)?.ok_or(sys::ZE_RESULT_ERROR_INVALID_SIZE)
    }

    /// As [`new`](Self::new), but `None` for sizes that do not fit.
    fn measure(layout: &Layout) -> ZeResult<Option<Self>> {
        let region = &layout.region;
        let width = region.width as usize;
        // A height or depth of 0 means that the box does not have that dimension.
        let height = region.height.max(1) as usize;
        let depth = region.depth.max(1) as usize;
        let pitch = if layout.pitch == 0 {
            width
        } else {
            layout.pitch as usize
        };
        let slice_pitch = match layout.slice_pitch {
            0 => pitch.checked_mul(height),
            bytes => Some(bytes as usize),
        };
        let reach = |slice_pitch: usize| {
            let slice = (height - 1).checked_mul(pitch)?.checked_add(width)?;
            let box_length = (depth - 1).checked_mul(slice_pitch)?.checked_add(slice)?;
            let origin = (region.originZ as usize)
                .checked_mul(slice_pitch)?
                .checked_add((region.originY as usize).checked_mul(pitch)?)?
                .checked_add(region.originX as usize)?;
            Some((slice, box_length, origin, origin.checked_add(box_length)?))
        };
        let Some((slice_pitch, (slice, length, origin, end))) =
            slice_pitch.and_then(|bytes| Some((bytes, reach(bytes)?)))
        else {
            return Ok(None);
        };
        if (height > 1 && pitch < width) || (depth > 1 && slice_pitch < slice) {
            return Ok(None);
        }
        // From the base on, as an origin beyond the allocation could lie in another one.
        let (length, end) = if width == 0 { (0, 0) } else { (length, end) };
        Span::new(layout.base, end)?;
        let Some(first) = layout.base.checked_add(origin) else {
            return Ok(None);
        };
        let span = Span::new(first, length)?;
        Ok(Some(Self {
            span,
            width,
            height,
            depth,
            pitch,
            slice_pitch,
        }))
    }

    fn rows(&self) -> usize {
        self.height * self.depth
    }

    /// Address of row `index`, counted through all slices.
    fn row(&self, index: usize) -> usize {
        self.span.address()
            + index / self.height * self.slice_pitch
            + index % self.height * self.pitch
    }

    fn overlaps(&self, other: &Self) -> bool {
        if self.width == 0 || !self.span.overlaps(&other.span) {
            return false;
        }
        // The rows of both boxes are in order of addresses, so one pass over both finds any pair that overlaps.
        let (mut mine, mut theirs) = (0, 0);
        while mine < self.rows() && theirs < other.rows() {
            let (left, right) = (self.row(mine), other.row(theirs));
            if left + self.width <= right {
                mine += 1;
            } else if right + other.width <= left {
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
            (to.width, to.height, to.depth) == (from.width, from.height, from.depth),
            sys::ZE_RESULT_ERROR_INVALID_SIZE,
        )?;
        ensure(
            !to.overlaps(&from),
            sys::ZE_RESULT_ERROR_OVERLAPPING_REGIONS,
        )?;
        let split = Split::new(to.width.saturating_mul(to.rows()));
        let rows_in_part = to.rows().div_ceil(split.parts().max(1));
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
            let row = |index| region.row(index)..region.row(index) + region.width;
            (0..region.rows()).map(row).collect()
        };
        Uses {
            what: format!(
                "a copy of {} rows of {} bytes",
                self.to.rows(),
                self.to.width
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
            if check::is_on() {
                // SAFETY: as below.
                unsafe { check::copying(from, self.to.width, to) };
            }
            // SAFETY: the caller of the append vouches for both boxes, as the specification demands; boxes in an
            // allocation lie inside of it, pins keep it alive, and the boxes do not overlap.
            unsafe {
                ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, self.to.width);
            }
        }
        Ok(())
    }
}
