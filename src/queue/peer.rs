//! Peer copies: from another context, another device, or both.

use std::ffi::c_void;
use std::ptr;

use level_zero_sys as sys;

use super::copy::not_null;
use super::overlap::parts;
use super::raw::RawQueue;
use super::submission::{After, Completion, Operand};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::usm::{Allocation, UsmKind};

/// The size in bytes of the staging chunk for copies between devices without peer access.
const STAGING_CHUNK: usize = 4 << 20;

impl RawQueue {
    /// Copies memory of the context of `from` to memory of this queue's context, and waits. It starts after all operations
    /// submitted to either queue before and after the wait lists of both handles; if one of these fails meanwhile, nothing is
    /// copied. The copy is direct where Level Zero supports that, else staged through the host.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's result.
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
        self.wait_before_copy(from, size)?;
        if size == 0 {
            return Ok(());
        }
        // SAFETY: the caller guarantees the validity of the ranges.
        match unsafe { self.peer_copy_async_raw(destination, from, source, size) }? {
            Some(event) => self.finish(&event, "copy", size),
            // SAFETY: the caller guarantees the validity of the ranges.
            None => unsafe { self.copy_by_chunks(destination, from, source, size) },
        }
    }

    /// Appends a direct copy from the context of `from`, if Level Zero supports it, without waiting for operations of
    /// `from`. `None` when a staged copy is needed, or when there are neither bytes nor
    /// events to wait for.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's result, unless that means that such copies are not supported.
    ///
    /// # Safety
    /// As for [`peer_copy_raw`](Self::peer_copy_raw), until the event is complete.
    pub unsafe fn peer_copy_async_raw(
        &self,
        destination: *mut c_void,
        from: &Self,
        source: *const c_void,
        size: usize,
    ) -> Result<Option<Event>> {
        if !if_supported(self.can_access(from))? {
            return Ok(None);
        }
        // SAFETY: the caller guarantees the validity of the ranges.
        if_supported(unsafe {
            if self.context() == from.context() {
                self.copy_raw(destination, source, size, Completion::Event)
            } else {
                self.copy_from_context_raw(destination, from.context(), source, size)
            }
        })
    }

    /// Waits for the operations in flight on both queues, and for the wait lists of both handles: each part of a copy from
    /// `from` is executed by one of the queues, and a direct copy that is still deferred could not be replaced by a staged one.
    ///
    /// # Errors
    /// [`Error::Operation`] when one of the operations in flight fails, or an event of the wait lists; not for operations that
    /// had failed before.
    fn wait_before_copy(&self, from: &Self, size: usize) -> Result<()> {
        for queue in [from, self] {
            if !queue.wait_list.is_empty() || !queue.is_idle() {
                let before = queue.barrier(&[]);
                let before = before.map_err(|cause| queue.failed("copy", size, cause))?;
                queue.finish(&before, "copy", size)?;
            }
        }
        Ok(())
    }

    /// Copies through a staging chunk in host memory of this queue's context, after the operations before it. The ranges may
    /// overlap. For the context of `from` the chunk is ordinary host memory, which Level Zero's copies support.
    ///
    /// # Safety
    /// As for [`peer_copy_raw`](Self::peer_copy_raw).
    unsafe fn copy_by_chunks(
        &self,
        destination: *mut c_void,
        from: &Self,
        source: *const c_void,
        size: usize,
    ) -> Result<()> {
        let chunk = size.min(STAGING_CHUNK);
        let allocation = Allocation::new(self.context(), self.device(), UsmKind::Host, chunk, 0)?;
        let staging = allocation.as_ptr();
        for (offset, length) in parts(destination.addr(), source.addr(), size, STAGING_CHUNK) {
            // Wrapping offsets, as device memory is no allocated object in Rust's sense.
            // SAFETY: the caller guarantees the validity of both ranges, and the chunk lives until this returns.
            unsafe {
                from.copy_and_wait(staging, source.wrapping_byte_add(offset), length)?;
                self.copy_and_wait(destination.wrapping_byte_add(offset), staging, length)?;
            }
        }
        Ok(())
    }

    /// Whether this queue's device can access memory of the device of `from`.
    fn can_access(&self, from: &Self) -> Result<bool> {
        let (here, there) = (self.device(), from.device());
        if !ptr::eq(here.driver().handle(), there.driver().handle()) {
            return Ok(false);
        }
        Ok(here == there || here.can_access(there)?)
    }

    /// Appends a copy from another context of the same driver; `None` when there is nothing to copy or to wait for.
    ///
    /// # Safety
    /// Both ranges must stay valid until the event is complete, `source` USM of `context`, `destination` of this queue's.
    unsafe fn copy_from_context_raw(
        &self,
        destination: *mut c_void,
        context: &Context,
        source: *const c_void,
        size: usize,
    ) -> Result<Option<Event>> {
        let (library, context) = (self.library(), context.clone());
        let (to, from) = (Operand::new(destination), Operand::new(source));
        self.run(
            "copy",
            size,
            Completion::Event,
            || After::Submission,
            move |list, signal, count, waits| {
                let (destination, source) = (to.get(), from.get());
                not_null(destination)?;
                not_null(source)?;
                // SAFETY: the caller guarantees the validity of both ranges, and `run` passes valid handles.
                unsafe {
                    call!(
                        library,
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

    /// A copy with pointers of this queue's context, or of the host.
    ///
    /// # Safety
    /// Both ranges must stay valid until this returns.
    pub(crate) unsafe fn copy_and_wait(
        &self,
        destination: *mut c_void,
        source: *const c_void,
        size: usize,
    ) -> Result<()> {
        // SAFETY: the caller guarantees the validity of both ranges.
        let event = unsafe { self.copy_raw(destination, source, size, Completion::Event) }?;
        self.end(event, "copy", size)
    }
}

/// The default value where the driver does not support the call; other errors stay errors.
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
        Error::Operation { cause, .. } | Error::CommandList { cause, .. } => is_unsupported(cause),
        Error::Call { result, .. } => matches!(
            *result,
            sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE | sys::ZE_RESULT_ERROR_UNSUPPORTED_VERSION
        ),
        _ => false,
    }
}
