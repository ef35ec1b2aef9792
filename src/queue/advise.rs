//! Prefetch and memory advice.

use std::ffi::c_void;
use std::ptr;

use level_zero_sys as sys;

use super::command_list::{NO_WAITS, append_barrier};
use super::copy::not_null;
use super::raw::RawQueue;
use super::submission::Operand;
use crate::error::Result;
use crate::event::Event;

impl RawQueue {
    /// Prefetches shared memory to the device; a hint, in order with the queue's operations.
    ///
    /// # Errors
    /// [`Error::Operation`](crate::Error::Operation) with Level Zero's result.
    ///
    /// # Safety
    /// The range must be USM of this context and valid until the event is complete.
    pub unsafe fn prefetch_raw(&self, pointer: *const c_void, size: usize) -> Result<Event> {
        let library = self.library();
        let range = Operand::new(pointer);
        self.hint("prefetch", pointer, size, move |list| {
            // SAFETY: the caller guarantees the validity of the range; `hint` passes a valid list.
            unsafe {
                call!(
                    library,
                    zeCommandListAppendMemoryPrefetch(list, range.get(), size)
                )
            }
        })
    }

    /// Advises the driver how memory will be used; a hint, in order with the queue's operations. A driver that [migrates shared
    /// memory](crate::Device::migrates_shared_memory) does not get it: after some of its hints, Intel's no longer moves what the
    /// host wrote to the device, also for later memory that was never advised.
    ///
    /// # Errors
    /// [`Error::Operation`](crate::Error::Operation) with Level Zero's result.
    ///
    /// # Safety
    /// As for [`prefetch_raw`](Self::prefetch_raw).
    pub unsafe fn advise_raw(
        &self,
        pointer: *const c_void,
        size: usize,
        advice: sys::ze_memory_advice_t,
    ) -> Result<Event> {
        let (library, device) = (self.library(), self.device().clone());
        let range = Operand::new(pointer);
        self.hint("advice", pointer, size, move |list| {
            if device.migrates_shared_memory() {
                return Ok(());
            }
            // SAFETY: the caller guarantees the validity of the range; `hint` passes a valid list, and the device is alive.
            unsafe {
                call!(
                    library,
                    zeCommandListAppendMemAdvise(list, device.handle(), range.get(), size, advice)
                )
            }
        })
    }

    /// Appends a hint between two barriers, as hints neither wait for events nor signal them.
    fn hint(
        &self,
        operation: &'static str,
        pointer: *const c_void,
        size: usize,
        append: impl FnOnce(sys::ze_command_list_handle_t) -> Result<()> + Send + 'static,
    ) -> Result<Event> {
        let library = self.library();
        let range = Operand::new(pointer);
        self.submit(move |list, signal, count, waits| {
            if size > 0 {
                not_null(range.get())?;
            }
            // SAFETY: `submit` passes valid handles.
            unsafe { append_barrier(library, list, ptr::null_mut(), (count, waits)) }?;
            if size > 0 {
                append(list)?;
            }
            // SAFETY: as above.
            unsafe { append_barrier(library, list, signal, NO_WAITS) }
        })
        .map_err(|cause| self.failed(operation, size, cause))
    }
}
