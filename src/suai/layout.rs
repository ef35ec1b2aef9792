//! The validated shape, strides and offset of an array.

use std::ops::Range;

use super::error::{Error, MAX_NDIM};

/// The positions of an array's elements relative to its pointer. Its sizes, strides and distances in bytes are validated: none
/// of them overflows an `isize`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    shape: Vec<usize>,
    /// In bytes, as the field of a record may be at any distance.
    strides: Vec<isize>,
    /// In bytes.
    offset: isize,
    itemsize: usize,
    elements: usize,
    extent: Range<isize>,
}

impl Layout {
    /// A layout from the interface's fields: `strides` and `offset` are in elements, `None` for strides means row-major without
    /// gaps, and `itemsize` is in bytes.
    ///
    /// As in NumPy, a shape is refused when the product of its non-zero dimensions is too large, even if another dimension is
    /// zero.
    ///
    /// # Errors
    /// [`Error::NegativeDimension`], [`Error::TooManyDimensions`], [`Error::StridesLength`],
    /// [`Error::ShapeOverflow`], [`Error::ExtentOverflow`], [`Error::OutOfRange`].
    pub fn new(
        shape: &[i64],
        strides: Option<&[i64]>,
        offset: i64,
        itemsize: usize,
    ) -> Result<Self, Error> {
        let shape = dimensions(shape)?;
        let strides = strides
            .map(|strides| as_strides(strides, shape.len()))
            .transpose()?;
        let offset = isize::try_from(offset).map_err(|_| out_of_range("offset", offset))?;
        if element_count(&shape, itemsize).is_none() {
            return Err(Error::ShapeOverflow { shape, itemsize });
        }
        let size = itemsize.cast_signed();
        let found = offset.checked_mul(size).and_then(|offset| {
            let strides = match &strides {
                Some(strides) => strides.iter().map(|it| it.checked_mul(size)).collect(),
                None => Some(row_major(&shape, itemsize)),
            };
            Self::checked(shape.clone(), strides?, offset, itemsize)
        });
        match found {
            Some(layout) => Ok(layout),
            // Made here, so that a layout without it is made in fewer instructions.
            None => Err(Error::ExtentOverflow {
                shape,
                strides,
                offset,
                itemsize,
            }),
        }
    }

    /// A layout with strides in bytes and the offset 0, as in NumPy.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_byte_strides(
        shape: &[i64],
        strides: &[i64],
        itemsize: usize,
    ) -> Result<Self, Error> {
        let shape = dimensions(shape)?;
        let strides = as_strides(strides, shape.len())?;
        Self::of_bytes(shape, strides, 0, itemsize)
    }

    /// A layout with strides and an offset in bytes.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`], [`Error::ExtentOverflow`].
    pub(super) fn of_bytes(
        shape: Vec<usize>,
        strides: Vec<isize>,
        offset: isize,
        itemsize: usize,
    ) -> Result<Self, Error> {
        if shape.len() > MAX_NDIM {
            return Err(Error::TooManyDimensions(shape.len()));
        }
        if element_count(&shape, itemsize).is_none() {
            return Err(Error::ShapeOverflow { shape, itemsize });
        }
        let elements = |bytes: isize| bytes / itemsize.max(1).cast_signed();
        let found = Self::checked(shape.clone(), strides.clone(), offset, itemsize);
        found.ok_or_else(|| Error::ExtentOverflow {
            shape,
            strides: Some(strides.into_iter().map(elements).collect()),
            offset: elements(offset),
            itemsize,
        })
    }

    /// A layout with strides and an offset in bytes, unless a distance overflows.
    fn checked(
        shape: Vec<usize>,
        strides: Vec<isize>,
        offset: isize,
        itemsize: usize,
    ) -> Option<Self> {
        let elements = element_count(&shape, itemsize)?;
        let extent = extent(&shape, &strides, offset, itemsize, elements)?;
        Some(Self {
            shape,
            strides,
            offset,
            itemsize,
            elements,
            extent,
        })
    }

    /// The dimensions.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of dimensions.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The strides in elements.
    ///
    /// # Errors
    /// [`Error::NotInElements`] for a field of records whose size is no multiple of the field's.
    pub fn element_strides(&self) -> Result<Vec<isize>, Error> {
        let strides = self.strides.iter();
        strides.map(|&stride| self.in_elements(stride)).collect()
    }

    /// The strides in bytes, as in NumPy and the buffer protocol.
    #[must_use]
    pub fn byte_strides(&self) -> Vec<isize> {
        self.strides.clone()
    }

    /// The distance in elements from the pointer to the element with all indices 0.
    ///
    /// # Errors
    /// [`Error::NotInElements`], as for the strides.
    pub fn element_offset(&self) -> Result<isize, Error> {
        self.in_elements(self.offset)
    }

    /// The same distance in bytes.
    #[must_use]
    pub fn byte_offset(&self) -> isize {
        self.offset
    }

    /// A distance in bytes as a number of elements.
    fn in_elements(&self, bytes: isize) -> Result<isize, Error> {
        let itemsize = self.itemsize.cast_signed();
        match bytes.checked_rem(itemsize) {
            Some(0) => Ok(bytes / itemsize),
            _ => Err(Error::NotInElements {
                bytes,
                itemsize: self.itemsize,
            }),
        }
    }

    /// Bytes of one element.
    #[must_use]
    pub fn itemsize(&self) -> usize {
        self.itemsize
    }

    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// The size of all elements in bytes, without gaps.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.elements * self.itemsize
    }

    /// The bytes that the elements touch, relative to the pointer and gaps included. Without elements none, at
    /// [`byte_offset`](Self::byte_offset).
    #[must_use]
    pub fn extent(&self) -> Range<isize> {
        self.extent.clone()
    }

    /// The addresses touched when the array's pointer is `pointer`; without elements, the empty range at `pointer`.
    ///
    /// # Errors
    /// [`Error::OutsideAddressSpace`] when they are not in the address space.
    pub fn addresses(&self, pointer: usize) -> Result<Range<usize>, Error> {
        if self.extent.is_empty() {
            return Ok(pointer..pointer);
        }
        pointer
            .checked_add_signed(self.extent.start)
            .zip(pointer.checked_add_signed(self.extent.end))
            .map(|(start, end)| start..end)
            .ok_or_else(|| Error::OutsideAddressSpace {
                pointer,
                extent: self.extent(),
            })
    }

    /// Checks that an array at `pointer` touches only the addresses of an allocation, which one without elements always does.
    ///
    /// # Errors
    /// [`Error::OutsideAllocation`] or [`Error::OutsideAddressSpace`], with pointer and extent.
    pub fn check_within(&self, pointer: usize, allocation: Range<usize>) -> Result<(), Error> {
        let touched = self.addresses(pointer)?;
        let is_inside = allocation.start <= touched.start && touched.end <= allocation.end;
        if is_inside || touched.is_empty() {
            return Ok(());
        }
        Err(Error::OutsideAllocation {
            pointer,
            extent: self.extent(),
            base: allocation.start,
            size: allocation.len(),
        })
    }

    /// Whether the elements are in row-major order without gaps. As in NumPy, the strides of dimensions of size 1, and those
    /// of an array without elements, are irrelevant.
    #[must_use]
    pub fn is_c_contiguous(&self) -> bool {
        self.is_contiguous(self.shape.iter().zip(&self.strides).rev())
    }

    /// Whether the elements are in column-major order without gaps, by the same rule.
    #[must_use]
    pub fn is_f_contiguous(&self) -> bool {
        self.is_contiguous(self.shape.iter().zip(&self.strides))
    }

    /// Whether the strides show that no elements overlap: each is at least as long as the elements of the shorter ones
    /// together. Where dimensions interleave, the answer is `false` although the elements may be distinct.
    #[must_use]
    pub fn is_distinct(&self) -> bool {
        let mut steps: Vec<(usize, usize)> = self
            .strides
            .iter()
            .map(|stride| stride.unsigned_abs())
            .zip(self.shape.iter().copied())
            .filter(|&(_, size)| size > 1)
            .collect();
        steps.sort_unstable();
        let mut span = self.itemsize;
        steps.into_iter().all(|(step, size)| {
            let fits = step >= span;
            span = span.saturating_add(step.saturating_mul(size - 1));
            fits
        })
    }

    /// Whether there are no gaps, with the dimensions from the innermost outwards.
    fn is_contiguous<'a>(
        &self,
        inner_to_outer: impl Iterator<Item = (&'a usize, &'a isize)>,
    ) -> bool {
        if self.elements == 0 {
            return true;
        }
        let mut expected = self.itemsize.cast_signed();
        for (&size, &stride) in inner_to_outer {
            if size != 1 && stride != expected {
                return false;
            }
            expected *= size.cast_signed();
        }
        true
    }
}

fn out_of_range(field: &'static str, value: i64) -> Error {
    Error::OutOfRange {
        field,
        value: value.to_string(),
    }
}

fn dimensions(shape: &[i64]) -> Result<Vec<usize>, Error> {
    if shape.len() > MAX_NDIM {
        return Err(Error::TooManyDimensions(shape.len()));
    }
    let dimension = |(index, &value): (usize, &i64)| match value {
        ..0 => Err(Error::NegativeDimension { index, value }),
        _ => usize::try_from(value).map_err(|_| out_of_range("shape", value)),
    };
    shape.iter().enumerate().map(dimension).collect()
}

fn as_strides(strides: &[i64], ndim: usize) -> Result<Vec<isize>, Error> {
    if strides.len() != ndim {
        return Err(Error::StridesLength {
            strides: strides.len(),
            shape: ndim,
        });
    }
    let stride = |&value| isize::try_from(value).map_err(|_| out_of_range("strides", value));
    strides.iter().map(stride).collect()
}

/// The number of elements, or `None` when the bytes of the non-zero dimensions overflow an `isize`.
fn element_count(shape: &[usize], itemsize: usize) -> Option<usize> {
    let bytes = shape
        .iter()
        .filter(|&&size| size != 0)
        .try_fold(itemsize.max(1), |bytes, &size| bytes.checked_mul(size))?;
    isize::try_from(bytes).ok()?;
    Some(shape.iter().product())
}

/// Row-major strides, `size` for the last dimension. A dimension of 0 counts as 1; the product of the other dimensions has
/// been validated.
fn row_major(shape: &[usize], size: usize) -> Vec<isize> {
    let mut strides = vec![size.cast_signed(); shape.len()];
    let mut step = size.cast_signed();
    for (stride, &size) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step *= size.max(1).cast_signed();
    }
    strides
}

/// The extent of the elements, or `None` when a distance overflows an `isize`. Strides and offset are in bytes.
fn extent(
    shape: &[usize],
    strides: &[isize],
    offset: isize,
    itemsize: usize,
    elements: usize,
) -> Option<Range<isize>> {
    if elements == 0 {
        return Some(offset..offset);
    }
    let (mut low, mut high) = (offset, offset);
    for (&size, stride) in shape.iter().zip(strides) {
        let distance = stride.checked_mul(isize::try_from(size - 1).ok()?)?;
        low = low.checked_add(distance.min(0))?;
        high = high.checked_add(distance.max(0))?;
    }
    let end = high.checked_add(isize::try_from(itemsize).ok()?)?;
    end.checked_sub(low)?;
    Some(low..end)
}
