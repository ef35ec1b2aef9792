//! Hints about where memory is used next.

use std::ffi::c_void;

use level_zero_sys as sys;

use super::RawQueue;
use super::transfer::not_null;
use crate::error::Result;
use crate::event::Event;

impl RawQueue {
    /// Asks for shared memory to be brought to the device before it is used there; a hint, in its place among the
    /// operations.
    ///
    /// # Errors
    /// [`Error::Operation`](crate::Error::Operation) with Level Zero's answer.
    ///
    /// # Safety
    /// The range must be USM of this context and valid until the event is complete.
    pub unsafe fn prefetch_raw(&self, pointer: *const c_void, size: usize) -> Result<Event> {
        self.hint("prefetch", pointer, size, |list| {
            // SAFETY: the caller vouches for the range, `hint` for the list.
            unsafe {
                call!(
                    self.library(),
                    zeCommandListAppendMemoryPrefetch(list, pointer, size)
                )
            }
        })
    }

    /// Tells the device how memory will be used; a hint, in its place among the operations.
    ///
    /// # Errors
    /// [`Error::Operation`](crate::Error::Operation) with Level Zero's answer.
    ///
    /// # Safety
    /// As for [`prefetch_raw`](Self::prefetch_raw).
    pub unsafe fn advise_raw(
        &self,
        pointer: *const c_void,
        size: usize,
        advice: sys::ze_memory_advice_t,
    ) -> Result<Event> {
        self.hint("advice", pointer, size, |list| {
            // SAFETY: the caller vouches for the range, `hint` for the list; the device is alive.
            unsafe {
                call!(
                    self.library(),
                    zeCommandListAppendMemAdvise(
                        list,
                        self.device().handle(),
                        pointer,
                        size,
                        advice
                    )
                )
            }
        })
    }

    /// Hints neither wait for events nor signal any, so one barrier stands before and one behind.
    fn hint(
        &self,
        operation: &'static str,
        pointer: *const c_void,
        size: usize,
        append: impl FnOnce(sys::ze_command_list_handle_t) -> Result<()>,
    ) -> Result<Event> {
        let barrier = |list, signal, count, waits| {
            // SAFETY: `submit` vouches for the handles.
            unsafe {
                call!(
                    self.library(),
                    zeCommandListAppendBarrier(list, signal, count, waits)
                )
            }
        };
        self.submit(&[], |list, signal, count, waits| {
            if size > 0 {
                not_null(pointer)?;
            }
            barrier(list, std::ptr::null_mut(), count, waits)?;
            if size > 0 {
                append(list)?;
            }
            barrier(list, signal, 0, std::ptr::null_mut())
        })
        .map_err(|cause| self.failed(operation, size, cause))
    }
}
