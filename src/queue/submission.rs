//! What every operation goes through: its place behind the one before, and what is kept until it is done.

use std::any::Any;
use std::mem;
use std::ptr;
use std::time::Duration;

use level_zero_sys as sys;

use super::RawQueue;
use super::list::List;
use crate::error::{Error, Result};
use crate::event::Event;

/// For how long a spin wait looks for the end: a GPU needs some ten microseconds for little work.
const SPIN: Duration = Duration::from_micros(20);

/// When a submission returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// At once, with the event of the end.
    Event,
    /// After a spin wait for the end, which little work comes to soon; with the event where that was too short, or where
    /// other work is in flight before it.
    SpinWait,
}

/// What appends an operation to a list: with the event that it signals, and how many and which events it waits for.
pub(super) trait Append:
    FnOnce(
    sys::ze_command_list_handle_t,
    sys::ze_event_handle_t,
    u32,
    *mut sys::ze_event_handle_t,
) -> Result<()>
{
}

impl<F> Append for F where
    F: FnOnce(
        sys::ze_command_list_handle_t,
        sys::ze_event_handle_t,
        u32,
        *mut sys::ze_event_handle_t,
    ) -> Result<()>
{
}

impl RawQueue {
    /// Appends one operation of `size` bytes behind the one before it; `None` when it is done already, as there is
    /// nothing to do or the spin wait came to its end.
    pub(super) fn run(
        &self,
        operation: &'static str,
        size: usize,
        completion: Completion,
        append: impl Append,
    ) -> Result<Option<Event>> {
        if size == 0 {
            return Ok(None);
        }
        match completion {
            Completion::Event => self.submit(&[], append).map(Some),
            Completion::SpinWait => self.spin(append),
        }
        .map_err(|cause| self.failed(operation, size, cause))
    }

    /// Appends something and waits a moment for it, without the lock. What has nothing to wait for needs no event: once
    /// the list is done, so is the operation. A later submission, and the end of the spin wait, append the event that is
    /// needed then.
    fn spin(&self, append: impl Append) -> Result<Option<Event>> {
        self.0.device.check_not_lost()?;
        let list = self.list()?;
        let mut state = list.state.lock();
        if !state.is_settled() {
            drop(state);
            return self.submit(&[], append).map(Some);
        }
        append(list.handle, ptr::null_mut(), 0, ptr::null_mut())?;
        let ticket = state.leave_unsignalled();
        drop(state);
        let done = list.synchronize(SPIN);
        let mut state = list.state.lock();
        let answer = match done {
            Ok(true) => {
                state
                    .unsignalled
                    .take_if(|unsignalled| *unsignalled == ticket);
                return Ok(None);
            }
            // The last event is behind this operation, with a later one perhaps.
            Ok(false) if state.unsignalled != Some(ticket) => return Ok(state.last.clone()),
            Ok(false) => list.signal_end(&mut state).map(|()| state.last.clone()),
            Err(error) => Err(error),
        };
        drop(state);
        answer.inspect_err(|_| {
            // The caller takes its memory back, so nothing may be at work on it any more. A second error means that the
            // device is lost, and the work with it.
            let _ = list.synchronize(Duration::MAX);
            let mut state = list.state.lock();
            state
                .unsignalled
                .take_if(|unsignalled| *unsignalled == ticket);
        })
    }

    /// Appends something behind the operation before it and behind a wait list, events of this context.
    pub(super) fn submit(&self, wait_list: &[Event], append: impl Append) -> Result<Event> {
        self.0.device.check_not_lost()?;
        let list = self.list()?;
        let event = list.events.take()?;
        let mut state = list.state.lock();
        list.signal_end(&mut state)?;
        let awaited: Vec<Event> = state
            .last
            .iter()
            .chain(wait_list)
            .filter(|event| !matches!(event.is_complete(), Ok(true)))
            .cloned()
            .collect();
        let mut waits: Vec<_> = awaited.iter().map(Event::handle).collect();
        let (count, waits) = match u32::try_from(waits.len()) {
            Ok(0) => (0, ptr::null_mut()),
            Ok(count) => (count, waits.as_mut_ptr()),
            Err(_) => {
                return Err(Error::Call {
                    function: "zeCommandListAppendBarrier",
                    result: sys::ZE_RESULT_ERROR_INVALID_SIZE,
                });
            }
        };
        append(list.handle, event.handle(), count, waits)?;
        // What is waited for must not be used again until this one is done.
        if count > 0 {
            state
                .in_flight
                .push_back((event.clone(), Box::new(awaited)));
        }
        let before = state.last.replace(event.clone());
        let done = state.take_done();
        drop(state);
        drop((before, done));
        Ok(event)
    }

    /// An event that is complete: the end of an operation on nothing.
    pub(super) fn done_event(&self) -> Result<Event> {
        let event = self.list()?.events.take()?;
        event.signal()?;
        Ok(event)
    }

    /// Keeps `operands` until `event` is complete. They are dropped by a later call, [`collect`](Self::collect) for
    /// instance, or with the queue.
    pub fn keep(&self, event: &Event, operands: impl Any + Send) {
        if matches!(event.is_complete(), Ok(true)) {
            return;
        }
        let Ok(list) = self.list() else {
            // There is no place to keep them at, and the device may be at work on them for ever.
            return mem::forget(operands);
        };
        let mut state = list.state.lock();
        let done = state.take_done();
        state
            .in_flight
            .push_back((event.clone(), Box::new(operands)));
        drop(state);
        drop(done);
    }

    /// Drops what finished operations held. What another call is just dropping is gone, too, when this returns, unless
    /// that takes long.
    pub fn collect(&self) {
        self.0.list.get().into_iter().for_each(List::collect);
    }

    /// Whether nothing that was submitted is in flight. It is not waited for a thread that is just submitting: then the
    /// answer is no.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let state = |list: &List| list.state.try_lock().is_some_and(|mut it| it.is_settled());
        self.0.list.get().is_none_or(state)
    }

    /// Whether nothing is kept for an operation any more, nor is just being dropped.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.0.list.get().is_none_or(List::is_idle)
    }

    /// Waits for everything that was submitted so far.
    ///
    /// # Errors
    /// [`Error::Call`] when the device is lost.
    pub fn wait(&self) -> Result<()> {
        let Some(list) = self.0.list.get() else {
            return Ok(());
        };
        let last = {
            let mut state = list.state.lock();
            list.signal_end(&mut state)?;
            state.last.clone()
        };
        if let Some(event) = last {
            event.finish()?;
        }
        list.collect();
        Ok(())
    }
}
