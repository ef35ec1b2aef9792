//! Appending copies and fills.

use std::ffi::c_void;

use level_zero_sys as sys;

use super::submission::Append;
use super::{Queue, Rows};
use crate::Result;
use crate::error::Error;
use crate::event::Event;

/// Fill patterns, one for each byte value: a pattern has to outlive the operation that reads it.
static PATTERNS: [u8; 256] = {
    let mut patterns = [0; 256];
    let mut value = 0;
    while value < patterns.len() {
        patterns[value] = value as u8;
        value += 1;
    }
    patterns
};

impl Queue {
    /// Appends a copy; `None` when there is nothing to copy.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's answer.
    ///
    /// # Safety
    /// Both ranges must be USM of this context or host memory, valid and free of other use that would race until the
    /// event is complete ([`keep`](Self::keep) holds what owns them).
    pub unsafe fn copy_raw(
        &self,
        destination: *mut c_void,
        source: *const c_void,
        size: usize,
    ) -> Result<Option<Event>> {
        // SAFETY: the caller vouches for both ranges.
        self.append("copy", size, unsafe {
            self.copying(destination, source, size)
        })
    }

    /// Appends a copy of `slices` times `rows` rows of `width` bytes; `None` when there is nothing to copy.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's answer, `ZE_RESULT_ERROR_INVALID_SIZE` for what it cannot count.
    ///
    /// # Safety
    /// As for [`copy_raw`](Self::copy_raw), of the rows; they must not overlap.
    pub unsafe fn copy_rows_raw(
        &self,
        destination: Rows<*mut c_void>,
        source: Rows<*const c_void>,
        [width, rows, slices]: [usize; 3],
    ) -> Result<Option<Event>> {
        self.append(
            "copy",
            width * rows * slices,
            |list, signal, count, waits| {
                let region = sys::ze_copy_region_t {
                    width: narrow(width)?,
                    height: narrow(rows)?,
                    // 0 is how to say that there are no slices; then their pitch does not matter.
                    depth: if slices == 1 { 0 } else { narrow(slices)? },
                    ..Default::default()
                };
                not_null(destination.first)?;
                not_null(source.first)?;
                let slice_pitch = |pitch| if slices == 1 { Ok(0) } else { narrow(pitch) };
                // SAFETY: the caller vouches for the rows, `append` for the handles; the region outlives the call.
                unsafe {
                    call!(
                        self.library(),
                        zeCommandListAppendMemoryCopyRegion(
                            list,
                            destination.first,
                            &region,
                            narrow(destination.pitch)?,
                            slice_pitch(destination.slice_pitch)?,
                            source.first,
                            &region,
                            narrow(source.pitch)?,
                            slice_pitch(source.slice_pitch)?,
                            signal,
                            count,
                            waits
                        )
                    )
                }
            },
        )
    }

    /// Appends a fill with a byte; `None` when there is nothing to fill.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's answer.
    ///
    /// # Safety
    /// As for [`copy_raw`](Self::copy_raw), of the one range.
    pub unsafe fn fill_raw(
        &self,
        destination: *mut c_void,
        value: u8,
        size: usize,
    ) -> Result<Option<Event>> {
        // SAFETY: the caller vouches for the range.
        self.append("fill", size, unsafe {
            self.filling(destination, value, size)
        })
    }

    /// Appends one operation behind the one before it.
    pub(super) fn append(
        &self,
        operation: &'static str,
        size: usize,
        append: impl Append,
    ) -> Result<Option<Event>> {
        if size == 0 {
            return Ok(None);
        }
        self.submit(&[], append)
            .map(Some)
            .map_err(|cause| self.failed(operation, size, cause))
    }

    /// What appends a copy.
    ///
    /// # Safety
    /// As for [`copy_raw`](Self::copy_raw), once it is called.
    pub(super) unsafe fn copying(
        &self,
        destination: *mut c_void,
        source: *const c_void,
        size: usize,
    ) -> impl Append {
        move |list, signal, count, waits| {
            not_null(destination)?;
            not_null(source)?;
            // SAFETY: the caller vouches for both ranges, whoever appends for the handles.
            unsafe {
                call!(
                    self.library(),
                    zeCommandListAppendMemoryCopy(
                        list,
                        destination,
                        source,
                        size,
                        signal,
                        count,
                        waits
                    )
                )
            }
        }
    }

    /// What appends a fill.
    ///
    /// # Safety
    /// As for [`fill_raw`](Self::fill_raw), once it is called.
    pub(super) unsafe fn filling(
        &self,
        destination: *mut c_void,
        value: u8,
        size: usize,
    ) -> impl Append {
        let pattern = (&raw const PATTERNS[usize::from(value)]).cast();
        move |list, signal, count, waits| {
            not_null(destination)?;
            // SAFETY: the caller vouches for the range, whoever appends for the handles; the pattern is static.
            unsafe {
                call!(
                    self.library(),
                    zeCommandListAppendMemoryFill(
                        list,
                        destination,
                        pattern,
                        1,
                        size,
                        signal,
                        count,
                        waits
                    )
                )
            }
        }
    }
}

/// Refuses a null pointer, which drivers follow.
pub(super) fn not_null(pointer: *const c_void) -> Result<()> {
    if pointer.is_null() {
        return Err(Error::NullPointer);
    }
    Ok(())
}

/// A size as Level Zero's copies of regions count it.
fn narrow(size: usize) -> Result<u32> {
    u32::try_from(size).map_err(|_| Error::Call {
        function: "zeCommandListAppendMemoryCopyRegion",
        result: sys::ZE_RESULT_ERROR_INVALID_SIZE,
    })
}
