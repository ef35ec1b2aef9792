//! Peer copies: from another context, another device, or both.

use std::ffi::c_void;
use std::ptr;

use level_zero_sys as sys;

use super::transfer::not_null;
use super::{Completion, RawQueue};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::usm::{Allocation, UsmKind};

/// The size in bytes of the pieces in which memory goes between places that cannot reach each other.
const PIECE: usize = 4 << 20;

impl RawQueue {
    /// Copies what the device of `from` holds over memory of this queue's device, and waits: after all that either
    /// queue was given before. It goes directly where Level Zero allows that, else through a piece of staging memory.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's answer.
    ///
    /// # Safety
    /// Both ranges must stay valid until this returns, `source` USM of the context of `from`, `destination` of this
    /// queue's.
    pub unsafe fn peer_copy_raw(
        &self,
        destination: *mut c_void,
        from: &Self,
        source: *const c_void,
        size: usize,
    ) -> Result<()> {
        if size == 0 {
            return Ok(());
        }
        from.wait()?;
        // SAFETY: the caller vouches for the ranges.
        match unsafe { self.begin_peer_copy_raw(destination, from, source, size) }? {
            Some(event) => self.finish(&event, "copy", size),
            // SAFETY: the caller vouches for the ranges.
            None => unsafe { self.staged_copy_raw(destination, from, source, size) },
        }
    }

    /// Appends a copy of what the device of `from` holds, if Level Zero allows it; it does not wait for what `from` was
    /// given. `None` when the bytes have to go [staged](Self::staged_copy_raw), or when there are none.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's answer, unless that means that the driver has no such copy.
    ///
    /// # Safety
    /// As for [`peer_copy_raw`](Self::peer_copy_raw), until the event is complete.
    pub unsafe fn begin_peer_copy_raw(
        &self,
        destination: *mut c_void,
        from: &Self,
        source: *const c_void,
        size: usize,
    ) -> Result<Option<Event>> {
        if !if_supported(self.reaches(from))? {
            return Ok(None);
        }
        // SAFETY: the caller vouches for the ranges.
        if_supported(unsafe {
            if self.context() == from.context() {
                self.copy_raw(destination, source, size, Completion::Event)
            } else {
                self.copy_from_context_raw(destination, from.context(), source, size)
            }
        })
    }

    /// Copies through a piece of staging memory of this queue's context, and waits. Level Zero's copies take it for any
    /// memory of the host in the context of `from`.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's answer, or the piece's allocation's.
    ///
    /// # Safety
    /// As for [`peer_copy_raw`](Self::peer_copy_raw).
    pub unsafe fn staged_copy_raw(
        &self,
        destination: *mut c_void,
        from: &Self,
        source: *const c_void,
        size: usize,
    ) -> Result<()> {
        let piece = size.min(PIECE);
        let staging = Allocation::new(self.context(), self.device(), UsmKind::Host, piece, 0)?;
        let middle = staging.as_ptr();
        for offset in (0..size).step_by(PIECE) {
            let length = PIECE.min(size - offset);
            // Wrapping, as memory of a device is no object of Rust's.
            // SAFETY: the caller vouches for the ends, and the piece lives until this returns.
            unsafe {
                from.copy_and_wait(middle, source.wrapping_byte_add(offset), length)?;
                self.copy_and_wait(destination.wrapping_byte_add(offset), middle, length)?;
            }
        }
        Ok(())
    }

    /// Whether this queue's device can be told to read what is on that of `from`.
    fn reaches(&self, from: &Self) -> Result<bool> {
        let (here, there) = (self.device(), from.device());
        if !ptr::eq(here.driver().handle(), there.driver().handle()) {
            return Ok(false);
        }
        Ok(here == there || here.can_access(there)?)
    }

    /// Appends a copy from another context of the same driver; `None` when there is nothing to copy.
    unsafe fn copy_from_context_raw(
        &self,
        destination: *mut c_void,
        context: &Context,
        source: *const c_void,
        size: usize,
    ) -> Result<Option<Event>> {
        self.run(
            "copy",
            size,
            Completion::Event,
            |list, signal, count, waits| {
                not_null(destination)?;
                not_null(source)?;
                // SAFETY: the caller vouches for both ranges, `run` for the handles.
                unsafe {
                    call!(
                        self.library(),
                        zeCommandListAppendMemoryCopyFromContext(
                            list,
                            destination,
                            context.handle(),
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

    unsafe fn copy_and_wait(
        &self,
        destination: *mut c_void,
        source: *const c_void,
        size: usize,
    ) -> Result<()> {
        // SAFETY: the caller vouches for both ranges.
        match unsafe { self.copy_raw(destination, source, size, Completion::Event) }? {
            Some(event) => self.finish(&event, "copy", size),
            None => Ok(()),
        }
    }
}

/// The default where the driver does not have what was called; other errors stay errors.
fn if_supported<T: Default>(answer: Result<T>) -> Result<T> {
    answer.or_else(|error| {
        if is_unsupported(&error) {
            Ok(T::default())
        } else {
            Err(error)
        }
    })
}

fn is_unsupported(error: &Error) -> bool {
    match error {
        Error::Load(_) => true,
        Error::Operation { cause, .. } => is_unsupported(cause),
        Error::Call { result, .. } => matches!(
            *result,
            sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE | sys::ZE_RESULT_ERROR_UNSUPPORTED_VERSION
        ),
        _ => false,
    }
}
