//! What every operation goes through: its place behind the one before, and what is kept until it is done.

use std::any::Any;
use std::collections::VecDeque;
use std::ptr;
use std::time::Duration;

use level_zero_sys as sys;

use super::Queue;
use crate::Result;
use crate::error::Error;
use crate::event::Event;

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

/// How long a collection waits for another one.
const TURN: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct State {
    /// The end of the newest operation, for the next one to wait on.
    pub(super) last: Option<Event>,
    /// What unfinished operations touch, oldest first.
    pub(super) under_way: VecDeque<(Event, Box<dyn Any + Send>)>,
}

impl Queue {
    /// Appends something behind the operation before it and behind `after`, events of this context.
    pub(super) fn submit(&self, after: &[Event], append: impl Append) -> Result<Event> {
        let event = self.0.events.take()?;
        let mut state = self.0.state.lock();
        let awaited: Vec<Event> = state
            .last
            .iter()
            .chain(after)
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
        append(self.0.list, event.handle(), count, waits)?;
        // What is waited for must not be used again until this one is done.
        if count > 0 {
            state
                .under_way
                .push_back((event.clone(), Box::new(awaited)));
        }
        state.last = Some(event.clone());
        let done = state.take_done();
        drop(state);
        drop(done);
        Ok(event)
    }

    /// Keeps `operands` until `event` is complete. They are dropped by a later call, [`collect`](Self::collect) for
    /// instance, or with the queue.
    pub fn keep(&self, event: &Event, operands: impl Any + Send) {
        if matches!(event.is_complete(), Ok(true)) {
            return;
        }
        let mut state = self.0.state.lock();
        let done = state.take_done();
        state
            .under_way
            .push_back((event.clone(), Box::new(operands)));
        drop(state);
        drop(done);
    }

    /// Drops what finished operations held. What another call is just dropping is gone, too, when this returns, unless
    /// that takes long.
    pub fn collect(&self) {
        // A drop may run anything, another collection too, so this cannot wait for ever.
        let turn = self.0.collecting.try_lock_for(TURN);
        let done = self.0.state.lock().take_done();
        drop(done);
        drop(turn);
    }

    /// Whether nothing is kept for an operation any more.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.0.state.lock().under_way.is_empty()
    }

    /// Waits for everything that was submitted so far.
    ///
    /// # Errors
    /// [`Error::Call`] when the device is lost.
    pub fn wait(&self) -> Result<()> {
        let last = self.0.state.lock().last.clone();
        if let Some(event) = last {
            while !event.wait(None)? {}
        }
        self.collect();
        Ok(())
    }
}

impl State {
    /// Whether nothing is under way.
    pub(super) fn is_settled(&mut self) -> bool {
        if self
            .last
            .as_ref()
            .is_some_and(|event| matches!(event.is_complete(), Ok(true)))
        {
            self.last = None;
        }
        self.last.is_none()
    }

    /// Takes out what finished operations held, for the caller to drop outside the lock: a drop may run anything.
    fn take_done(&mut self) -> Vec<(Event, Box<dyn Any + Send>)> {
        let mut done = Vec::new();
        while let Some((event, _)) = self.under_way.front()
            && matches!(event.is_complete(), Ok(true))
        {
            done.extend(self.under_way.pop_front());
        }
        done
    }
}
