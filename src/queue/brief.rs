//! Operations that take little longer than to submit them: their end is looked for, not waited for.

use std::ffi::c_void;
use std::ptr;

use parking_lot::MutexGuard;

use super::Queue;
use super::submission::{Append, State};
use crate::Result;
use crate::event::Event;

/// How often the end is looked for: a GPU needs some ten microseconds, a look a tenth of one.
const LOOKS: usize = 100;

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
        let answer = match self.settled() {
            Some(mut state) => self.run_alone(&mut state, append),
            None => self.submit(&[], append).map(Some),
        };
        answer.map_err(|cause| self.failed(operation, size, cause))
    }

    /// Runs what has nothing to wait for.
    fn run_alone(&self, state: &mut State, append: impl Append) -> Result<Option<Event>> {
        let event = match state.brief.take() {
            Some(event) => event.reset().map(|()| event),
            None => self.0.brief_events.take(),
        }?;
        append(self.0.list, event.handle(), 0, ptr::null_mut())?;
        for _ in 0..LOOKS {
            if event.is_complete()? {
                state.brief = Some(event);
                return Ok(None);
            }
        }
        state.last = Some(event.clone());
        Ok(Some(event))
    }

    /// The queue's state, if nothing is under way and no other thread is just submitting.
    fn settled(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = self.0.state.try_lock()?;
        state.is_settled().then_some(state)
    }
}
