//! Operations that take little longer than to submit them: their end is looked for, not waited for.

use std::ffi::c_void;
use std::ptr;

use level_zero_sys as sys;
use parking_lot::MutexGuard;

use super::Queue;
use super::submission::{Append, State};
use crate::Result;
use crate::call::check;
use crate::event::Event;

/// For how long the end is looked for, in nanoseconds: a GPU needs some ten microseconds.
const PATIENCE: u64 = 20_000;

/// `zeCommandListHostSynchronize`, of specification 1.6, which headers may be older than.
pub(super) type Synchronize =
    unsafe extern "C" fn(sys::ze_command_list_handle_t, u64) -> sys::ze_result_t;

/// Finds it, if the library has it.
pub(super) fn find_synchronize(library: &sys::Library) -> Option<Synchronize> {
    // SAFETY: the type is the one that the specification gives the function.
    unsafe { library.symbol(c"zeCommandListHostSynchronize") }.ok()
}

impl Queue {
    /// Whether nothing that was submitted is under way. It is not waited for a thread that is just submitting: then the
    /// answer is no.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.settled().is_some()
    }

    /// Copies, and looks for a moment whether that is done; if it is not, or something else is under way, the answer is
    /// the event to wait for. Blocks no longer than that moment.
    ///
    /// # Errors
    /// As [`copy_raw`](Self::copy_raw).
    ///
    /// # Safety
    /// As for [`copy_raw`](Self::copy_raw), where the answer is an event.
    pub unsafe fn copy_briefly_raw(
        &self,
        destination: *mut c_void,
        source: *const c_void,
        size: usize,
    ) -> Result<Option<Event>> {
        // SAFETY: the caller vouches for both ranges.
        self.run_briefly("copy", size, unsafe {
            self.copying(destination, source, size)
        })
    }

    /// Fills with a byte as [`copy_briefly_raw`](Self::copy_briefly_raw) copies.
    ///
    /// # Errors
    /// As [`fill_raw`](Self::fill_raw).
    ///
    /// # Safety
    /// As for [`fill_raw`](Self::fill_raw), where the answer is an event.
    pub unsafe fn fill_briefly_raw(
        &self,
        destination: *mut c_void,
        value: u8,
        size: usize,
    ) -> Result<Option<Event>> {
        // SAFETY: the caller vouches for the range.
        self.run_briefly("fill", size, unsafe {
            self.filling(destination, value, size)
        })
    }

    fn run_briefly(
        &self,
        operation: &'static str,
        size: usize,
        append: impl Append,
    ) -> Result<Option<Event>> {
        if size == 0 {
            return Ok(None);
        }
        let answer = match (self.0.synchronize, self.settled()) {
            (Some(synchronize), Some(mut state)) => self.run_alone(&mut state, synchronize, append),
            (_, state) => {
                drop(state);
                self.submit(&[], append).map(Some)
            }
        };
        answer.map_err(|cause| self.failed(operation, size, cause))
    }

    /// Runs what has nothing to wait for. It needs no event: once the list is done, so is the operation.
    fn run_alone(
        &self,
        state: &mut State,
        synchronize: Synchronize,
        append: impl Append,
    ) -> Result<Option<Event>> {
        append(self.0.list, ptr::null_mut(), 0, ptr::null_mut())?;
        // SAFETY: the list is alive.
        match unsafe { synchronize(self.0.list, PATIENCE) } {
            sys::ZE_RESULT_SUCCESS => Ok(None),
            // Not yet, or never with this driver.
            sys::ZE_RESULT_NOT_READY
            | sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
            | sys::ZE_RESULT_ERROR_UNINITIALIZED => self.end(state).map(Some),
            result => check("zeCommandListHostSynchronize", result).map(|()| None),
        }
        // Whoever is told of an error takes its memory back, so nothing may be at work on it any more.
        .inspect_err(|_| {
            // SAFETY: the list is alive. A second error means that the device is lost, and the work with it.
            unsafe { synchronize(self.0.list, u64::MAX) };
        })
    }

    /// An event for the end of what was appended without one.
    fn end(&self, state: &mut State) -> Result<Event> {
        let event = self.0.events.take()?;
        // SAFETY: the list and the event are alive; a barrier waits for all that is in the list before it.
        unsafe {
            call!(
                self.library(),
                zeCommandListAppendBarrier(self.0.list, event.handle(), 0, ptr::null_mut())
            )
        }?;
        state.last = Some(event.clone());
        Ok(event)
    }

    /// The queue's state, if nothing is under way and no other thread is just submitting.
    fn settled(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = self.0.state.try_lock()?;
        state.is_settled().then_some(state)
    }
}
