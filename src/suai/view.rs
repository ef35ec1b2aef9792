//! Views: the layouts that result from indexing, transposing and reshaping, over the same memory.

use super::{Error, Layout};

/// One entry of an index for [`Layout::index`], which needs an entry for every dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// One position, counted from the end if negative; removes the dimension.
    At(isize),
    /// `length` positions from `start` with distance `step`, all within the dimension. Without positions, `start` and `step`
    /// may be any numbers; with one, `step`.
    Slice {
        /// The first position, not counted from the end.
        start: isize,
        /// The distance from one position to the next.
        step: isize,
        /// The number of positions.
        length: usize,
    },
    /// A new dimension of size 1.
    NewAxis,
}

/// The index that varies fastest in the order of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The last, as in C.
    RowMajor,
    /// The first, as in Fortran.
    ColumnMajor,
}

/// Why a view is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// The numbers of entries and dimensions differ.
    #[error("{given} indices for an array of {ndim} dimensions")]
    IndexCount {
        /// The number of entries, without new axes.
        given: usize,
        /// The number of dimensions.
        ndim: usize,
    },
    /// A position is outside of its dimension.
    #[error("index {index} is out of bounds for axis {axis} of size {size}")]
    OutOfBounds {
        /// The position as given.
        index: isize,
        /// The dimension's number.
        axis: usize,
        /// The dimension's size.
        size: usize,
    },
    /// The axes are not a permutation.
    #[error("axes {axes:?} are not a permutation of the {ndim} axes of the array")]
    Axes {
        /// The axes as given.
        axes: Vec<isize>,
        /// The number of dimensions.
        ndim: usize,
    },
    /// The new shape has another number of elements.
    #[error(
        "an array of shape {shape:?} with {elements} elements cannot have the shape {wanted:?}"
    )]
    Reshape {
        /// The shape.
        shape: Vec<usize>,
        /// Its number of elements.
        elements: usize,
        /// The new shape as given.
        wanted: Vec<i64>,
    },
    /// The layout is invalid.
    #[error(transparent)]
    Layout(#[from] Error),
}

impl Layout {
    /// A layout of `shape` without gaps, with offset 0.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn contiguous(shape: &[i64], order: Order, itemsize: usize) -> Result<Self, Error> {
        match order {
            Order::RowMajor => Self::new(shape, None, 0, itemsize),
            Order::ColumnMajor => {
                let reversed: Vec<i64> = shape.iter().rev().copied().collect();
                Self::new(&reversed, None, 0, itemsize)?.reversed()
            }
        }
    }

    /// The same elements relative to a pointer that is `distance` bytes higher.
    ///
    /// # Errors
    /// [`Error::ExtentOverflow`].
    pub fn rebased(&self, distance: isize) -> Result<Self, Error> {
        Self::of_bytes(
            self.shape().to_vec(),
            self.byte_strides(),
            self.byte_offset().saturating_sub(distance),
            self.itemsize(),
        )
    }

    /// The same elements relative to a pointer to the lowest byte of any of them.
    ///
    /// # Errors
    /// [`Error::ExtentOverflow`].
    pub fn from_lowest(&self) -> Result<Self, Error> {
        self.rebased(self.extent().start)
    }

    /// One field of all elements, which begins `offset` bytes after the beginning of an element. A field that is an array
    /// adds the dimensions of `shape`, row-major; `itemsize` is the size of one of its elements.
    ///
    /// # Errors
    /// [`Error::TooManyDimensions`], and [`Error::ExtentOverflow`] for a field outside of the elements.
    pub fn field(&self, offset: usize, shape: &[usize], itemsize: usize) -> Result<Self, Error> {
        let inner: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
        let inner = Self::new(&inner, None, 0, itemsize)?;
        let end = offset.checked_add(inner.nbytes());
        if end.is_none_or(|end| end > self.itemsize()) {
            return Err(Error::ExtentOverflow {
                shape: shape.to_vec(),
                strides: None,
                offset: offset.cast_signed(),
                itemsize,
            });
        }
        Self::of_bytes(
            [self.shape(), shape].concat(),
            [self.byte_strides(), inner.byte_strides()].concat(),
            self.byte_offset().saturating_add_unsigned(offset),
            itemsize,
        )
    }

    /// The elements that an index selects.
    ///
    /// # Errors
    /// [`ViewError::IndexCount`], [`ViewError::OutOfBounds`], and [`Error`] for too many dimensions.
    pub fn index(&self, entries: &[Index]) -> Result<Self, ViewError> {
        let given = entries
            .iter()
            .filter(|&&entry| entry != Index::NewAxis)
            .count();
        if given != self.ndim() {
            return Err(ViewError::IndexCount {
                given,
                ndim: self.ndim(),
            });
        }
        let all = self.byte_strides();
        let mut axes = self.shape().iter().zip(all).enumerate();
        let (mut shape, mut strides, mut offset) = (Vec::new(), Vec::new(), self.byte_offset());
        for &entry in entries {
            let next = (entry != Index::NewAxis).then(|| axes.next()).flatten();
            let Some((axis, (&size, stride))) = next else {
                shape.push(1);
                strides.push(0);
                continue;
            };
            let start = match entry {
                Index::Slice {
                    start,
                    step,
                    length,
                } => {
                    if let Some(index) = outside(start, step, length, size) {
                        return Err(ViewError::OutOfBounds { index, axis, size });
                    }
                    shape.push(length);
                    // Without a second position the step is irrelevant, and may be any number. Without elements, so is
                    // the stride.
                    strides.push(if length > 1 {
                        stride.wrapping_mul(step)
                    } else {
                        stride
                    });
                    start
                }
                Index::At(index) => {
                    position(index, size).ok_or(ViewError::OutOfBounds { index, axis, size })?
                }
                Index::NewAxis => 0,
            };
            // The start of an empty slice may be outside of the dimension, and must not change the offset.
            if (0..size.cast_signed()).contains(&start) {
                offset = offset.wrapping_add(start.wrapping_mul(stride));
            }
        }
        Ok(Self::of_bytes(shape, strides, offset, self.itemsize())?)
    }

    /// The dimensions in another order; negative axes count from the end.
    ///
    /// # Errors
    /// [`ViewError::Axes`].
    pub fn transposed(&self, axes: &[isize]) -> Result<Self, ViewError> {
        let wrong = || ViewError::Axes {
            axes: axes.to_vec(),
            ndim: self.ndim(),
        };
        let all = self.byte_strides();
        let (mut shape, mut strides) = (Vec::new(), Vec::new());
        let mut seen = vec![false; self.ndim()];
        for &axis in axes {
            let axis = position(axis, self.ndim())
                .ok_or_else(wrong)?
                .unsigned_abs();
            let at = (self.shape().get(axis), all.get(axis), seen.get_mut(axis));
            let (Some(&size), Some(&stride), Some(seen @ false)) = at else {
                return Err(wrong());
            };
            *seen = true;
            shape.push(size);
            strides.push(stride);
        }
        if shape.len() != self.ndim() {
            return Err(wrong());
        }
        Ok(Self::of_bytes(
            shape,
            strides,
            self.byte_offset(),
            self.itemsize(),
        )?)
    }

    /// The dimensions in reverse order.
    ///
    /// # Errors
    /// None in practice, as the layout is valid.
    pub fn reversed(&self) -> Result<Self, Error> {
        let shape: Vec<usize> = self.shape().iter().rev().copied().collect();
        let strides: Vec<isize> = self.byte_strides().into_iter().rev().collect();
        Self::of_bytes(shape, strides, self.byte_offset(), self.itemsize())
    }

    /// The elements as often as an array of the shape `wanted` needs them, as NumPy assigns: dimensions of size 1 are repeated, and
    /// those of size 1 before all of `wanted` are left out. `None` if the shapes do not match.
    #[must_use]
    pub fn broadcast(&self, wanted: &[usize]) -> Option<Self> {
        let all = self.byte_strides();
        let extra = self.ndim().saturating_sub(wanted.len());
        let (before, shape) = self.shape().split_at_checked(extra)?;
        if before.iter().any(|&size| size != 1) {
            return None;
        }
        let missing = wanted.len() - shape.len();
        let mut strides = vec![0; missing];
        let sizes = shape.iter().zip(wanted.get(missing..)?);
        for ((&size, &to), &stride) in sizes.zip(all.get(extra..)?) {
            strides.push(match size {
                _ if size == to => stride,
                1 => 0,
                _ => return None,
            });
        }
        let offset = self.byte_offset();
        Self::of_bytes(wanted.to_vec(), strides, offset, self.itemsize()).ok()
    }

    /// The shape `wanted`, with a -1 replaced by the remaining size.
    ///
    /// # Errors
    /// [`ViewError::Reshape`] for another number of elements, or for other negative entries.
    pub fn fill_in(&self, wanted: &[i64]) -> Result<Vec<i64>, ViewError> {
        let wrong = || ViewError::Reshape {
            shape: self.shape().to_vec(),
            elements: self.elements(),
            wanted: wanted.to_vec(),
        };
        let elements = self.elements() as i64;
        let known = wanted
            .iter()
            .filter(|&&size| size != -1)
            .try_fold(1i64, |product, &size| {
                product.checked_mul(size).filter(|_| size >= 0)
            })
            .ok_or_else(wrong)?;
        let mut filled = wanted.to_vec();
        match wanted.iter().filter(|&&size| size == -1).count() {
            0 if known == elements => {}
            1 if known != 0 && elements % known == 0 => {
                for size in filled.iter_mut().filter(|size| **size == -1) {
                    *size = elements / known;
                }
            }
            _ => return Err(wrong()),
        }
        Ok(filled)
    }

    /// The elements, in `order`, with another shape of the same number of elements; `None` when that needs a copy.
    ///
    /// # Errors
    /// [`ViewError::Reshape`] for another number of elements.
    pub fn reshaped(&self, wanted: &[i64], order: Order) -> Result<Option<Self>, ViewError> {
        let wanted = self.fill_in(wanted)?;
        if order == Order::RowMajor {
            return self.reshaped_rows(&wanted);
        }
        let reversed: Vec<i64> = wanted.into_iter().rev().collect();
        match self.reversed()?.reshaped_rows(&reversed)? {
            Some(layout) => Ok(Some(layout.reversed()?)),
            None => Ok(None),
        }
    }

    /// The row-major case; `wanted` has the same number of elements.
    fn reshaped_rows(&self, wanted: &[i64]) -> Result<Option<Self>, ViewError> {
        if self.elements() == 0 {
            let packed = Self::new(wanted, None, 0, self.itemsize())?;
            return Ok(Some(packed.rebased(self.byte_offset().saturating_neg())?));
        }
        // Dimensions that continue each other are merged to runs, from the innermost outwards.
        let mut runs: Vec<(i64, i64)> = Vec::new();
        let strides = self.byte_strides();
        for (&size, &stride) in self.shape().iter().zip(&strides).rev() {
            let (size, stride) = (size as i64, stride as i64);
            match runs.last_mut() {
                _ if size == 1 => {}
                Some((length, step)) if step.checked_mul(*length) == Some(stride) => {
                    *length *= size
                }
                _ => runs.push((size, stride)),
            }
        }
        let mut runs = runs.into_iter();
        let itemsize = self.itemsize() as i64;
        let (mut left, mut step) = (1, itemsize);
        let mut new_strides = vec![0; wanted.len()];
        for (stride, &size) in new_strides.iter_mut().zip(wanted).rev() {
            if size == 1 {
                *stride = step;
                continue;
            }
            if left == 1 {
                (left, step) = runs.next().unwrap_or((1, itemsize));
            }
            // A new dimension has to be within one run.
            if left % size != 0 {
                return Ok(None);
            }
            *stride = step;
            left /= size;
            step = step.wrapping_mul(size);
        }
        Ok(Some(Self::of_bytes(
            wanted.iter().map(|&size| size as usize).collect(),
            new_strides.iter().map(|&stride| stride as isize).collect(),
            self.byte_offset(),
            self.itemsize(),
        )?))
    }

    /// The elements in memory order, and the layout with this one's indices when they are packed in that order.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] when an array with repeated elements would be too large when packed.
    pub fn packed(&self) -> Result<(Self, Self), Error> {
        let strides = self.byte_strides();
        let mut axes: Vec<usize> = (0..self.ndim()).collect();
        let stride = |axis: &usize| strides.get(*axis).copied().unwrap_or(0);
        let size = |axis: &usize| self.shape().get(*axis).copied().unwrap_or(1);
        // Largest strides first; the sort is stable for equal ones.
        axes.sort_by_key(|axis| std::cmp::Reverse(stride(axis).unsigned_abs()));
        let (mut first, mut packed_first) = (self.byte_offset(), 0);
        let (mut shape, mut upward) = (Vec::new(), Vec::new());
        for axis in &axes {
            let (size, stride) = (size(axis), stride(axis));
            shape.push(size);
            upward.push(stride.saturating_abs());
            if stride < 0 && self.elements() != 0 {
                first += stride * (size.cast_signed() - 1);
            }
        }
        let in_memory = Self::of_bytes(shape, upward, first, self.itemsize())?;
        let mut packed_strides = vec![0; self.ndim()];
        let mut step = self.itemsize().cast_signed();
        for axis in axes.iter().rev() {
            let downward = stride(axis) < 0;
            packed_strides[*axis] = if downward { -step } else { step };
            let size = size(axis).cast_signed();
            if downward && self.elements() != 0 {
                packed_first += step * (size - 1);
            }
            step *= size.max(1);
        }
        let packed = Self::of_bytes(
            self.shape().to_vec(),
            packed_strides,
            packed_first,
            self.itemsize(),
        )?;
        Ok((in_memory, packed))
    }

    /// The [extent](Self::extent) as a row of bytes, and the layout with this one's indices in a copy of that row. Where
    /// elements are repeated, the row may be shorter than the [packed](Self::packed) elements.
    ///
    /// # Errors
    /// [`Error::ExtentOverflow`].
    pub fn spanned(&self) -> Result<(Self, Self), Error> {
        let extent = self.extent();
        let row = Self::of_bytes(vec![extent.len()], vec![1], extent.start, 1)?;
        let within = Self::of_bytes(
            self.shape().to_vec(),
            self.byte_strides(),
            self.byte_offset().saturating_sub(extent.start),
            self.itemsize(),
        )?;
        Ok((row, within))
    }
}

/// The first or the last position of a slice, if it is outside of a dimension of this size.
fn outside(start: isize, step: isize, length: usize, size: usize) -> Option<isize> {
    let steps = isize::try_from(length.checked_sub(1)?).unwrap_or(isize::MAX);
    let last = start.saturating_add(step.saturating_mul(steps));
    let is_outside = |at: &isize| !(0..size.cast_signed()).contains(at);
    [start, last].into_iter().find(is_outside)
}

/// The position of `index`, which counts from the end if negative, if it is less than `size`.
fn position(index: isize, size: usize) -> Option<isize> {
    let size = size.cast_signed();
    let position = if index < 0 { index + size } else { index };
    (0..size).contains(&position).then_some(position)
}
