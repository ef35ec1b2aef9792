//! The immediate command list of a queue, with its events and the operations in flight.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use level_zero_sys as sys;

use super::host_task::Worker;
use super::recorded::Recorded;
use super::retained::Retained;
use crate::call::{check, enumerate};
use crate::context::Context;
use crate::device::Device;
use crate::error::Result;
use crate::event::{Event, EventPool};
use crate::process::{Condvar, Mutex};

/// A command list and its operations.
pub(super) struct List {
    context: Context,
    pub(super) handle: sys::ze_command_list_handle_t,
    pub(super) events: Arc<EventPool>,
    pub(super) recorded: Arc<Recorded>,
    /// Waits for the list itself, where the driver has the function.
    synchronize: sys::extensions::ze_pfnCommandListHostSynchronize_t,
    /// Runs the host tasks.
    pub(super) worker: Worker,
    /// The lock also orders appends, as the specification forbids concurrent ones. No thread waits for the device while it
    /// holds the lock.
    pub(super) state: Mutex<State>,
    /// Wakes the threads that wait for the end of a drop of operands.
    pub(super) dropped: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    /// The event of the newest operation, on which the next one waits.
    pub(super) last: Option<Event>,
    /// The number of the operation in flight that signals no event.
    pub(super) unsignalled: Option<u64>,
    /// The number of operations so far that signal no event.
    unsignalled_count: u64,
    /// The number of operations so far that signal an event.
    numbered: u64,
    pub(super) retained: Retained,
}

// SAFETY: the handles may be used from any thread, and appends are ordered by the mutex.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

impl List {
    pub(super) fn new(context: &Context, device: &Device) -> Result<Self> {
        let description = sys::ze_command_queue_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
            ordinal: engine(device)?,
            mode: sys::ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
            ..Default::default()
        };
        let mut handle = ptr::null_mut();
        // SAFETY: context and device are alive; description and list outlive the call.
        unsafe {
            call!(
                context.library(),
                zeCommandListCreateImmediate(
                    context.handle(),
                    device.handle(),
                    &description,
                    &mut handle
                )
            )
        }?;
        // From 1 on.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            handle,
            recorded: Recorded::new(device.handle().addr(), number),
            events: EventPool::new(context, device),
            synchronize: context.library().extensions().zeCommandListHostSynchronize,
            worker: Worker::default(),
            state: Mutex::default(),
            dropped: Condvar::default(),
            context: context.clone(),
        })
    }

    /// Waits until an operation of the list is complete. When the wait fails, the error is returned only once the device
    /// cannot access the operands any more.
    pub(super) fn drain(&self, event: &Event) -> Result<()> {
        event.finish().inspect_err(|_| {
            self.wait_after_failure(event);
        })
    }

    /// After a failed wait, waits for the list, or else for the event; `false` when both waits fail, as on a lost device.
    /// The list may be idle before the operation is submitted.
    fn wait_after_failure(&self, event: &Event) -> bool {
        event.is_submitted() && matches!(self.synchronize(Duration::MAX), Ok(true)) || event.drain()
    }

    /// Waits until no operation is in flight, and drops the operands. Failures are reported to threads that wait for the
    /// events. The wait stops for a lost device, which executes no operations and responds slowly.
    pub(super) fn finish(&self) {
        let events: Vec<Event> = {
            let state = self.state.lock();
            state
                .retained
                .events()
                .chain(&state.last)
                .cloned()
                .collect()
        };
        let _ = events
            .iter()
            .all(|event| event.finish().is_ok() || self.wait_after_failure(event));
        self.reclaim();
    }

    /// Waits until all appended operations are complete or the timeout has expired; returns whether they are complete.
    /// Returns `false` if the driver lacks the function.
    pub(super) fn synchronize(&self, timeout: Duration) -> Result<bool> {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let Some(synchronize) = self.synchronize else {
            return Ok(false);
        };
        // SAFETY: the list is alive.
        match unsafe { synchronize(self.handle, timeout) } {
            sys::ZE_RESULT_NOT_READY
            | sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
            | sys::ZE_RESULT_ERROR_UNINITIALIZED => Ok(false),
            result => check("zeCommandListHostSynchronize", result).map(|()| true),
        }
    }

    /// Appends the signal of an event after an operation that signals none.
    pub(super) fn signal_end(&self, state: &mut State) -> Result<()> {
        if state.unsignalled.is_none() {
            return Ok(());
        }
        let event = self.events.take()?;
        // SAFETY: the list and the event are alive; a barrier waits for all operations before it in the list.
        unsafe {
            call!(
                self.context.library(),
                zeCommandListAppendBarrier(self.handle, event.handle(), 0, ptr::null_mut())
            )
        }?;
        event.set_submitted(Ok(()));
        state.unsignalled = None;
        state.set_last(&event);
        Ok(())
    }
}

impl State {
    /// Whether no operation is in flight.
    pub(super) fn is_idle(&mut self) -> bool {
        if self.last.as_ref().is_some_and(Event::is_over) {
            self.last = None;
        }
        self.last.is_none() && self.unsignalled.is_none()
    }

    /// Records that an operation without an event was appended; returns its number.
    pub(super) fn set_unsignalled(&mut self) -> u64 {
        self.unsignalled_count += 1;
        self.unsignalled = Some(self.unsignalled_count);
        self.unsignalled_count
    }

    /// Records the newest operation; returns the event of the one before, which the caller drops outside the lock.
    pub(super) fn set_last(&mut self, event: &Event) -> Option<Event> {
        self.numbered += 1;
        event.set_number(self.numbered);
        self.last.replace(event.clone())
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the drop of the queue has waited for the operations in flight, and this was the last owner.
        let _ = unsafe { call!(self.context.library(), zeCommandListDestroy(self.handle)) };
    }
}

/// The ordinal of the first command queue group that supports compute and copy; 0 when the device reports none.
fn engine(device: &Device) -> Result<u32> {
    let empty = sys::ze_command_queue_group_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES,
        ..Default::default()
    };
    let groups = enumerate(empty, |count, groups| {
        // SAFETY: the device is alive; `groups` is null or has room for `count`.
        unsafe {
            call!(
                device.driver().library(),
                zeDeviceGetCommandQueueGroupProperties(device.handle(), count, groups)
            )
        }
    })?;
    let wanted = sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE.0
        | sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY.0;
    Ok(groups
        .iter()
        .zip(0u32..)
        .find(|(group, _)| group.flags & wanted == wanted)
        .map_or(0, |(_, ordinal)| ordinal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_without_an_event_has_a_number_of_its_own() {
        let mut state = State::default();
        let numbers = [(); 3].map(|()| {
            let number = state.set_unsignalled();
            assert_eq!(state.unsignalled, Some(number));
            number
        });
        assert!(numbers.is_sorted_by(|one, next| one < next));
    }
}
