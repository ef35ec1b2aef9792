//! Submission: the order of operations, their completion, and the operands that are retained until then.

use std::any::Any;
use std::mem;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use level_zero_sys as sys;
use zeusm_process::MutexGuard;

use super::command_list::NO_WAITS;
use super::list::{List, Retired, State};
use super::raw::RawQueue;
use super::recorded::Submission;
use super::retained::may_drop;
use super::worker::run_user_code;
use crate::device::Clocks;
use crate::error::Result;
use crate::event::Event;
use crate::history;

/// The timeout of a spin wait; a GPU needs about ten microseconds for a small operation.
const SPIN_TIMEOUT: Duration = Duration::from_micros(20);

/// When a submission returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Immediately, with the event that completes with the operation.
    Event,
    /// After a spin wait for the completion, which is fast for small operations. An event is returned if the spin wait times
    /// out, or if other operations are in flight.
    SpinWait,
}

/// The state of the wait list before which an operation must not be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Submitted: the device waits for the rest.
    Submission,
    /// Complete: the append itself may wait, and would do so with the list's lock, and perhaps Python's GIL.
    Completion,
}

impl After {
    fn is_reached_by(self, event: &Event) -> bool {
        match self {
            Self::Submission => event.is_submitted(),
            Self::Completion => event.is_over(),
        }
    }

    /// Waits until an event has reached this state. The wait for the completion may fail.
    fn wait_for(self, event: &Event) -> Result<()> {
        match self {
            Self::Submission => {
                event.wait_submitted(None);
                Ok(())
            }
            Self::Completion => event.drain(),
        }
    }
}

/// A function that appends an operation to a command list, given the event to signal and the length and the events of the
/// wait list. It may be called later, and by another thread.
pub(super) trait Append:
    FnOnce(
        sys::ze_command_list_handle_t,
        sys::ze_event_handle_t,
        u32,
        *mut sys::ze_event_handle_t,
    ) -> Result<()>
    + Send
    + 'static
{
}

impl<F> Append for F where
    F: FnOnce(
            sys::ze_command_list_handle_t,
            sys::ze_event_handle_t,
            u32,
            *mut sys::ze_event_handle_t,
        ) -> Result<()>
        + Send
        + 'static
{
}

/// A pointer to an operand, or its handle, which another thread may pass to Level Zero.
pub(super) struct Operand<T>(*mut T);

// SAFETY: it only carries the address. Who passes that to Level Zero has a reason of its own.
unsafe impl<T> Send for Operand<T> {}

impl<T> Operand<T> {
    /// That of a pointer.
    pub(super) fn new(pointer: *const T) -> Self {
        Self(pointer.cast_mut())
    }

    /// The pointer. By a method, as a closure that names the field would capture the pointer alone.
    pub(super) fn get(&self) -> *mut T {
        self.0
    }
}

/// An operation whose submission waits for the host.
struct Deferred {
    /// Completes with the operation.
    event: Event,
    wait_list: Vec<Event>,
    after: After,
    append: Box<dyn Append>,
}

/// The next operation of a list, which is locked: no other operation comes between those that it waits for and itself.
struct Next<'a> {
    /// The first field, as it is unlocked before the other fields are dropped.
    state: MutexGuard<'a, State>,
    list: &'a Arc<List>,
    /// Completes with the operation.
    event: Event,
    wait_list: &'a [Event],
    /// The events that the operation waits for: those of the wait list, and of operations before it.
    awaited: Vec<Event>,
}

impl RawQueue {
    /// Submits an operation of `size` bytes; `None` when it is complete already: it has neither bytes nor events to wait for,
    /// or it completed within the spin wait. `after` is called only if the operation has events to wait for.
    pub(super) fn run(
        &self,
        operation: &'static str,
        size: usize,
        completion: Completion,
        after: impl FnOnce() -> After,
        append: impl Append,
    ) -> Result<Option<Event>> {
        if size == 0 {
            // It is complete when its wait list is.
            let event = (!self.wait_list.is_empty()).then(|| self.barrier(&[]));
            let event = event.transpose();
            return event.map_err(|cause| self.failed(operation, 0, cause));
        }
        let is_recording = history::is_recording();
        let recorded = is_recording.then(|| self.device().clocks().ok()).flatten();
        let answer = match completion {
            Completion::SpinWait if recorded.is_none() => self.spin(after, append),
            // The history needs the event for the times.
            Completion::SpinWait | Completion::Event => self.submit_after(after, append).map(Some),
        };
        let event = answer.map_err(|cause| self.failed(operation, size, cause))?;
        if let (Some(clocks), Some(event)) = (recorded, &event) {
            self.record(operation, size, clocks, event);
        }
        Ok(event)
    }

    /// Has the history record an operation that was submitted after `clocks` and signals `event`.
    fn record(&self, name: &'static str, size: usize, clocks: Clocks, event: &Event) {
        let Ok(list) = self.list() else { return };
        list.recorded.add(Submission {
            name,
            size,
            number: event.number_in(&list.events).unwrap_or_default(),
            clocks,
            event: event.clone(),
        });
    }

    /// Submits an operation without an event and spins for its completion, without the lock. An operation without
    /// a wait list needs no event, as it is complete when the list is. If an event becomes necessary, a later submission or
    /// the end of the spin wait appends its signal.
    fn spin(&self, after: impl FnOnce() -> After, append: impl Append) -> Result<Option<Event>> {
        self.inner.device.check_not_lost()?;
        let list = self.list()?;
        let mut state = list.lock()?;
        if !state.is_idle() || !self.wait_list.is_empty() {
            drop(state);
            return self.submit_after(after, append).map(Some);
        }
        let commands = list.append_with(&mut state, &[], |list| {
            append(list, ptr::null_mut(), 0, ptr::null_mut())
        })?;
        let number = state.set_unsignalled();
        drop(state);
        let is_complete = match commands.synchronize(SPIN_TIMEOUT) {
            Ok(false) => list.events.reserve().map(|()| false),
            answer => answer,
        };
        let mut state = list.state.lock();
        let answer = match is_complete {
            Ok(true) => {
                let is_newest = state.end_unsignalled(number);
                // Their operations are complete, as the list was idle before this operation, and none was appended since.
                let retired = is_newest.then(|| mem::take(&mut state.retired));
                drop(state);
                drop(retired);
                return Ok(None);
            }
            // An append has failed since, and so did its wait for this operation.
            Ok(false) if state.take_unended(number) => {
                drop(state);
                commands.finish().map(|()| None)
            }
            // A later submission has appended the signal of an event after this operation.
            Ok(false) if state.unsignalled != Some(number) => return Ok(state.end_of(number)),
            Ok(false) => {
                let signalled = list.signal_end(&mut state);
                let end = state.end_of(number);
                drop(state);
                signalled.map(|()| end)
            }
            Err(error) => {
                drop(state);
                Err(error)
            }
        };
        // After an error the caller owns the operands again, so the operation must not be in flight any more.
        answer.inspect_err(|_| list.end_after_failure(&commands, number))
    }

    /// Submits an operation after the one before it and after the wait list. If one of these waits for the host, the submission
    /// is deferred until it does not.
    pub(super) fn submit(&self, append: impl Append) -> Result<Event> {
        self.submit_after(|| After::Submission, append)
    }

    /// As [`submit`](Self::submit), but if one of these has not reached the state of `after`, the submission is deferred until
    /// it has.
    fn submit_after(&self, after: impl FnOnce() -> After, append: impl Append) -> Result<Event> {
        let mut next = self.next()?;
        let after = if next.awaited.is_empty() {
            After::Submission
        } else {
            after()
        };
        if next.may_append(after)? {
            if after == After::Completion {
                // The driver must not get events that have become complete since they were listed, either.
                next.awaited.clear();
            }
            return next.append(append);
        }
        next.defer(after, append)
    }

    /// Submits an operation after the one before it and after the wait list; `None` if it would be deferred.
    pub(super) fn submit_at_once(&self, append: impl Append) -> Result<Option<Event>> {
        let next = self.next()?;
        if !next.may_append(After::Submission)? {
            return Ok(None);
        }
        next.append(append).map(Some)
    }

    /// Locks the list for its next operation, which waits for the one before it and for the wait list.
    fn next(&self) -> Result<Next<'_>> {
        self.inner.device.check_not_lost()?;
        let list = self.list()?;
        let event = list.events.take()?;
        let mut state = list.lock()?;
        list.signal_end(&mut state)?;
        let awaited = state.awaited(&self.wait_list)?;
        Ok(Next {
            state,
            list,
            event,
            wait_list: &self.wait_list,
            awaited,
        })
    }

    /// A complete event, for operations without bytes and without a wait list.
    pub(crate) fn complete_event(&self) -> Result<Event> {
        let event = self.list()?.events.take()?;
        event.signal()?;
        Ok(event)
    }

    /// Retains `operands` until `event` is complete. A later call, such as [`reclaim`](Self::reclaim), or the queue's drop
    /// drops them; if the event is complete already, this call. A panic in the drop ends there.
    pub fn retain(&self, event: &Event, operands: impl Any + Send) {
        if may_drop() && event.is_over() {
            return run_user_code(|| drop(operands));
        }
        let Ok(list) = self.list() else {
            // The operands are leaked, as there is no list to retain them and the device may access them.
            return mem::forget(operands);
        };
        list.drop_complete();
        let number = event.number_in(&list.events);
        let operands = Box::new(operands);
        let mut state = list.state.lock();
        state.retained.insert(number, event.clone(), operands);
    }

    /// Drops the operands of complete operations, except those that other threads are dropping. A panic in the drop of operands
    /// ends there, as queues drop them in many of their functions.
    pub fn drop_complete(&self) {
        if let Some(list) = self.inner.list.get() {
            list.drop_complete();
        }
    }

    /// Drops the operands of complete operations. If other threads are dropping operands, this waits for them, with a timeout
    /// of ten seconds. In a drop of operands it does not wait.
    pub fn reclaim(&self) {
        if let Some(list) = self.inner.list.get() {
            list.reclaim();
        }
    }

    /// Whether no operation is in flight. It does not block: while another thread is submitting, it returns `false`.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let state = |list: &Arc<List>| list.state.try_lock().is_some_and(|mut it| it.is_idle());
        self.inner.list.get().is_none_or(state)
    }

    /// Whether no operands are retained or being dropped.
    #[must_use]
    pub fn is_reclaimed(&self) -> bool {
        let is_reclaimed = |list: &Arc<List>| list.state.lock().retained.is_empty();
        self.inner.list.get().is_none_or(is_reclaimed)
    }

    /// Waits for all operations submitted so far.
    ///
    /// # Errors
    /// [`Error::DeviceLost`](crate::Error::DeviceLost); [`Error::NotExecuted`](crate::Error::NotExecuted) when the
    /// last operation has failed.
    pub fn wait(&self) -> Result<()> {
        while !self.wait_timeout(None)? {}
        Ok(())
    }

    /// As [`wait`](Self::wait), with a timeout (`None`: no timeout); returns whether they are complete.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&self, timeout: Option<Duration>) -> Result<bool> {
        let Some(list) = self.inner.list.get() else {
            return Ok(true);
        };
        let last = {
            let mut state = list.state.lock();
            list.signal_end(&mut state)?;
            state.last.clone()
        };
        let waited = last.map_or(Ok(true), |event| event.wait(timeout));
        list.reclaim();
        waited
    }
}

impl Next<'_> {
    /// Whether all that the operation waits for has reached the state. An event that is not submitted waits for the host: an
    /// operation that waited for it on the device would occupy the engine before the work that the host needs.
    ///
    /// # Errors
    /// [`Error::NotExecuted`] when an operation of the wait list has failed since, which then counts as submitted.
    fn may_append(&self, after: After) -> Result<bool> {
        let mut awaited = self.awaited.iter();
        let may = awaited.all(|event| self.list.required(after, event).is_reached_by(event));
        self.wait_list
            .iter()
            .try_for_each(Event::check_submission)?;
        Ok(may)
    }

    /// Appends the operation to the command list.
    fn append(mut self, append: impl Append) -> Result<Event> {
        self.list
            .append(&mut self.state, &self.event, &self.awaited, append)?;
        let retired = mem::take(&mut self.state.retired);
        Ok(self.enter(retired))
    }

    /// Leaves the operation to the queue's host thread, which appends it when all that it waits for has reached the state.
    ///
    /// The host thread gets it under the lock. Therefore it gets every operation before any task that waits for its event, and
    /// no cycle is possible between the host threads of several queues.
    fn defer(self, after: After, append: impl Append) -> Result<Event> {
        let deferred = Deferred {
            event: self.event.clone(),
            wait_list: self.awaited.clone(),
            after,
            append: Box::new(append),
        };
        let list = Arc::clone(self.list);
        let task = Box::new(move || list.submit_deferred(deferred));
        self.list.worker.send(task)?;
        // Retired command lists wait for an operation that is appended, as a failed wait has to know them until then.
        Ok(self.enter(Vec::new()))
    }

    /// Makes it the newest operation and unlocks the list. The events of the wait list and of the operation before are not
    /// reused, and the retired command lists not destroyed, before this operation is complete.
    fn enter(mut self, retired: Vec<Retired>) -> Event {
        let before = self.state.set_last(&self.event);
        if !self.awaited.is_empty() || !retired.is_empty() || before.is_some() {
            let number = self.event.number_in(&self.list.events);
            let operands = Box::new((self.awaited, retired, before));
            let retained = &mut self.state.retained;
            retained.insert(number, self.event.clone(), operands);
        }
        let has_complete = self.state.retained.has_complete();
        drop(self.state);
        if has_complete {
            self.list.drop_complete();
        }
        self.event
    }
}

impl List {
    /// The state of an event before which an operation that waits for it must not be appended. One of another device has to be
    /// complete: if that device is lost, the operation would never end, nor any later one of this device.
    fn required(&self, after: After, event: &Event) -> After {
        if *event.device() == self.device {
            after
        } else {
            After::Completion
        }
    }

    /// Waits until an event has reached that state. After an error it has not, or its operation was not executed.
    ///
    /// # Errors
    /// [`Error::NotExecuted`] when its operation has failed, [`Error::DeviceLost`] when it is of another device that is
    /// lost, or the error of the wait.
    fn reach(&self, after: After, event: &Event) -> Result<()> {
        self.required(after, event).wait_for(event)?;
        event.check_reachable(&self.device)
    }

    /// Appends an operation after a wait list.
    fn append(
        &self,
        state: &mut State,
        event: &Event,
        wait_list: &[Event],
        append: impl Append,
    ) -> Result<()> {
        let mut waits: Vec<_> = wait_list.iter().map(Event::handle).collect();
        let (count, waits) = match waits.len() {
            0 => NO_WAITS,
            count => (count as u32, waits.as_mut_ptr()),
        };
        self.append_with(state, wait_list, |list| {
            append(list, event.handle(), count, waits)
        })?;
        event.follow(wait_list);
        event.set_submitted(Ok(()));
        Ok(())
    }

    /// Submits a deferred operation when its wait list, with the operation before it, has reached the required state.
    fn submit_deferred(&self, deferred: Deferred) {
        let Deferred {
            event,
            mut wait_list,
            after,
            append,
        } = deferred;
        let reached = wait_list.iter().map(|event| self.reach(after, event));
        // All are waited for, also after an error.
        let reached = reached.fold(Ok(()), Result::and);
        wait_list.retain(|event| !event.is_over());
        let answer = reached.and_then(|()| {
            // Intel's driver may abort in the append.
            self.device.check_not_lost()?;
            let mut state = self.lock()?;
            self.append(&mut state, &event, &wait_list, append)
        });
        if answer.is_err() {
            // Later operations wait for this event only, which therefore completes after all that it follows.
            if Event::drain_all(&wait_list).is_err() {
                // At least after the operations before it, which are all submitted. If this fails, too, the device is lost.
                let _ = self.synchronize();
            }
            event.set_submitted(answer);
        }
        event.announce_submission();
    }
}

impl State {
    /// The events that the next operation waits for: the one before it, those of a wait list, and those that a failed append
    /// may have left the device waiting for; without those that are over.
    ///
    /// # Errors
    /// [`Error::NotExecuted`] when an operation of the wait list has failed.
    fn awaited(&self, wait_list: &[Event]) -> Result<Vec<Event>> {
        let before = self.last.iter().chain(self.retired_wait_for());
        let mut awaited: Vec<_> = before.filter(|event| !event.is_over()).cloned().collect();
        for event in wait_list {
            if event.is_over() {
                event.check_submission()?;
            } else {
                awaited.push(event.clone());
            }
        }
        Ok(awaited)
    }
}
