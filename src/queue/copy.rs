//! Copies and fills.

use std::ffi::c_void;

use level_zero_sys as sys;

use super::raw::RawQueue;
use super::submission::{After, Completion, Operand};
use crate::error::{Error, Result};
use crate::event::Event;

/// Rows in memory, for [`RawQueue::copy_rows_raw`].
#[derive(Clone, Copy, Debug)]
pub struct Rows<P> {
    /// The first byte of the first row.
    pub first: P,
    /// The pitch of the rows in bytes.
    pub pitch: usize,
    /// The pitch of the slices in bytes.
    pub slice_pitch: usize,
}

/// The alignment of the host memory that Intel's driver passes to a GPU.
const DRIVER_ALIGNMENT: usize = 4;

/// The largest fill in bytes that may be a copy from the host.
const LARGEST_COPIED_FILL: usize = 16 << 10;

/// The fill patterns of all byte values. They are static, as a pattern has to outlive the operation that reads it.
static PATTERNS: [u8; 256] = {
    let mut patterns = [0; 256];
    let mut value = 0;
    while value < patterns.len() {
        patterns[value] = value as u8;
        value += 1;
    }
    patterns
};

impl RawQueue {
    /// As [`copy_raw`](Self::copy_raw), of ranges that are the same or do not overlap, for an operation with this name. If the
    /// submission of `first`, the operation before it, has failed, so does this one.
    ///
    /// # Safety
    /// As for `copy_raw`.
    pub(super) unsafe fn copy_disjoint(
        &self,
        operation: &'static str,
        destination: *mut c_void,
        source: *const c_void,
        size: usize,
        completion: Completion,
        first: Option<Event>,
    ) -> Result<Option<Event>> {
        let library = self.library();
        let (to, from) = (Operand::new(destination), Operand::new(source));
        self.run(
            operation,
            size,
            completion,
            || self.after([destination.cast_const(), source]),
            move |list, signal, count, waits| {
                let (destination, source) = (to.get(), from.get());
                first.map_or(Ok(()), |first| first.check_submission())?;
                not_null(destination)?;
                not_null(source)?;
                // SAFETY: the caller guarantees the validity of both ranges, and `run` passes valid handles.
                unsafe {
                    call!(
                        library,
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
            },
        )
    }

    /// Submits a copy of `slices` times `rows` rows of `width` bytes; `None` when it is complete already.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's result; `ZE_RESULT_ERROR_INVALID_SIZE` for sizes beyond 32 bits.
    ///
    /// # Safety
    /// As for [`copy_raw`](Self::copy_raw), of the rows; they must not overlap.
    pub unsafe fn copy_rows_raw(
        &self,
        destination: Rows<*mut c_void>,
        source: Rows<*const c_void>,
        [width, rows, slices]: [usize; 3],
        completion: Completion,
    ) -> Result<Option<Event>> {
        let library = self.library();
        let (to, from) = (Operand::new(destination.first), Operand::new(source.first));
        self.run(
            "copy",
            width * rows * slices,
            completion,
            || self.after([destination.first.cast_const(), source.first]),
            move |list, signal, count, waits| {
                let region = sys::ze_copy_region_t {
                    width: narrow(width)?,
                    height: narrow(rows)?,
                    // A depth of 0 means a two-dimensional copy, which ignores the slice pitch.
                    depth: if slices == 1 { 0 } else { narrow(slices)? },
                    ..Default::default()
                };
                not_null(to.get())?;
                not_null(from.get())?;
                let slice_pitch = |pitch| if slices == 1 { Ok(0) } else { narrow(pitch) };
                // SAFETY: the caller guarantees the validity of the rows, `run` passes valid handles, and the region
                // outlives the call.
                unsafe {
                    call!(
                        library,
                        zeCommandListAppendMemoryCopyRegion(
                            list,
                            to.get(),
                            &region,
                            narrow(destination.pitch)?,
                            slice_pitch(destination.slice_pitch)?,
                            from.get(),
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

    /// Submits a fill with a byte; `None` when it is complete already.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's result.
    ///
    /// # Safety
    /// As for [`copy_raw`](Self::copy_raw), of the one range.
    pub unsafe fn fill_raw(
        &self,
        destination: *mut c_void,
        value: u8,
        size: usize,
        completion: Completion,
    ) -> Result<Option<Event>> {
        let is_small = completion == Completion::SpinWait && size <= LARGEST_COPIED_FILL;
        if is_small && self.copies_fills() {
            // SAFETY: as for this function.
            return unsafe { self.fill_by_copy(destination, value, size) };
        }
        let library = self.library();
        let to = Operand::new(destination);
        self.run(
            "fill",
            size,
            completion,
            || After::Submission,
            move |list, signal, count, waits| {
                let pattern = (&raw const PATTERNS[usize::from(value)]).cast();
                not_null(to.get())?;
                // SAFETY: the caller guarantees the validity of the range, `run` passes valid handles, and the pattern is
                // static.
                unsafe {
                    call!(
                        library,
                        zeCommandListAppendMemoryFill(
                            list,
                            to.get(),
                            pattern,
                            1,
                            size,
                            signal,
                            count,
                            waits
                        )
                    )
                }
            },
        )
    }

    /// Whether a small fill that is waited for is a copy from the host. Intel's driver executes the fills of a discrete GPU's
    /// memory by the device, but small copies from host memory other than USM by the host, in a tenth of the time. Such a copy
    /// would have to wait for the operations before it.
    fn copies_fills(&self) -> bool {
        !self.device().is_integrated() && self.wait_list.is_empty() && self.is_idle()
    }

    /// As [`fill_raw`](Self::fill_raw), with a spin wait, by a copy from the host.
    ///
    /// # Safety
    /// As for `fill_raw`.
    unsafe fn fill_by_copy(
        &self,
        destination: *mut c_void,
        value: u8,
        size: usize,
    ) -> Result<Option<Event>> {
        let bytes = vec![value; size];
        let (source, completion) = (bytes.as_ptr().cast(), Completion::SpinWait);
        // SAFETY: as for `fill_raw`; the bytes are retained until the copy is complete.
        let event =
            unsafe { self.copy_disjoint("fill", destination, source, size, completion, None) }?;
        if let Some(event) = &event {
            self.retain(event, bytes);
        }
        Ok(event)
    }

    /// Intel's driver executes a copy between memory of a discrete GPU and host memory other than USM by the host if it is
    /// small, in the append, which waits for the wait list. With a wait list it has the GPU read the host memory, on all GPUs; if
    /// that is read-only, it copies it to a buffer of its own first, and the GPU reads wrong bytes from an address that is not a
    /// multiple of 4.
    fn after(&self, sides: [*const c_void; 2]) -> After {
        let is_usm = |side: *const c_void| self.context().driver_attributes(side.addr()).is_ok();
        let [destination, source] = sides;
        let may_be_wrong = || {
            let is_aligned = source.addr().is_multiple_of(DRIVER_ALIGNMENT);
            !is_aligned && !self.context().driver().is_cpu_runtime() && !is_usm(source)
        };
        let must_wait = if self.device().is_integrated() {
            may_be_wrong()
        } else {
            !is_usm(destination) || !is_usm(source)
        };
        if must_wait {
            After::Completion
        } else {
            After::Submission
        }
    }
}

/// Returns an error for a null pointer, which some drivers dereference.
pub(super) fn not_null(pointer: *const c_void) -> Result<()> {
    if pointer.is_null() {
        return Err(Error::NullPointer);
    }
    Ok(())
}

/// Converts a size to the 32 bits of Level Zero's region copies.
fn narrow(size: usize) -> Result<u32> {
    u32::try_from(size).map_err(|_| Error::Call {
        function: "zeCommandListAppendMemoryCopyRegion",
        result: sys::ZE_RESULT_ERROR_INVALID_SIZE,
    })
}
