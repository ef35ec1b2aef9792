//! The immediate command list of a queue, with its events and what is in flight.

use std::any::Any;
use std::collections::VecDeque;
use std::mem;
use std::ptr;
use std::thread::{self, ThreadId};
use std::time::Duration;

use level_zero_sys as sys;

use super::host_task::Worker;
use crate::call::{check, enumerate};
use crate::context::Context;
use crate::device::Device;
use crate::error::Result;
use crate::event::{Event, EventPool};
use crate::process::{Condvar, Mutex};

/// How long a collection waits for another one.
const TURN: Duration = Duration::from_millis(100);

/// `zeCommandListHostSynchronize`, of specification 1.6, which headers may be older than.
type Synchronize = unsafe extern "C" fn(sys::ze_command_list_handle_t, u64) -> sys::ze_result_t;

/// A command list, and what was appended to it.
pub(super) struct List {
    context: Context,
    pub(super) handle: sys::ze_command_list_handle_t,
    pub(super) events: std::sync::Arc<EventPool>,
    /// How to wait for the list itself, where that is known.
    synchronize: Option<Synchronize>,
    /// Where host tasks run.
    pub(super) worker: Worker,
    /// Also what keeps two threads from appending at once, which the specification forbids. No thread waits for the
    /// device with it.
    pub(super) state: Mutex<State>,
    /// The thread that is dropping what finished operations held.
    collector: Mutex<Option<ThreadId>>,
    collected: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    /// The end of the newest operation, for the next one to wait on.
    pub(super) last: Option<Event>,
    /// The operation in flight that signals no event, by its number.
    pub(super) unsignalled: Option<u64>,
    /// How many there have been.
    numbered: u64,
    /// What unfinished operations touch, oldest first.
    pub(super) in_flight: VecDeque<(Event, Box<dyn Any + Send>)>,
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
        Ok(Self {
            handle,
            events: EventPool::new(context, device),
            synchronize: context.library().extensions().zeCommandListHostSynchronize,
            worker: Worker::default(),
            state: Mutex::default(),
            collector: Mutex::default(),
            collected: Condvar::default(),
            context: context.clone(),
        })
    }

    /// Waits until an operation of the list is over, also where the wait itself fails.
    pub(super) fn drain(&self, event: &Event) -> Result<()> {
        event.finish().inspect_err(|_| {
            // The failure is told once the device cannot be at work on the operands any more.
            self.settle(event);
        })
    }

    /// Waits until the list is done or the event is, where a wait has failed. False where no answer is to be had, as of a
    /// device that is lost.
    fn settle(&self, event: &Event) -> bool {
        matches!(self.synchronize(Duration::MAX), Ok(true)) || event.drain()
    }

    /// Waits for all that was appended, at most for `limit`, and tells whether it is done; it is not, either, where the
    /// driver cannot tell.
    pub(super) fn synchronize(&self, limit: Duration) -> Result<bool> {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let Some(synchronize) = self.synchronize else {
            return Ok(false);
        };
        // SAFETY: the list is alive.
        match unsafe { synchronize(self.handle, limit) } {
            sys::ZE_RESULT_NOT_READY
            | sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
            | sys::ZE_RESULT_ERROR_UNINITIALIZED => Ok(false),
            result => check("zeCommandListHostSynchronize", result).map(|()| true),
        }
    }

    /// Has an event signalled at the end of what was appended without one.
    pub(super) fn signal_end(&self, state: &mut State) -> Result<()> {
        if state.unsignalled.is_none() {
            return Ok(());
        }
        let event = self.events.take()?;
        // SAFETY: the list and the event are alive; a barrier waits for all that is in the list before it.
        unsafe {
            call!(
                self.context.library(),
                zeCommandListAppendBarrier(self.handle, event.handle(), 0, ptr::null_mut())
            )
        }?;
        state.unsignalled = None;
        state.last = Some(event);
        Ok(())
    }

    /// Whether there is nothing that a collection could find, or wait for.
    pub(super) fn is_idle(&self) -> bool {
        // In this order, as a collection takes its turn before it takes things out.
        self.state.lock().in_flight.is_empty() && self.collector.lock().is_none()
    }

    /// Drops what finished operations held. What another call is just dropping is gone, too, when this returns, unless
    /// that takes long.
    pub(super) fn collect(&self) {
        let here = thread::current().id();
        // A drop may run anything, another collection too, so this cannot wait for ever.
        let mut collector = self.collector.lock();
        if *collector != Some(here) {
            collector = self
                .collected
                .wait_while(collector, TURN, |collector| collector.is_some());
        }
        let turn = collector.is_none().then(|| {
            *collector = Some(here);
            Turn(self)
        });
        drop(collector);
        let done = self.state.lock().take_done();
        drop(done);
        drop(turn);
    }
}

/// Ends when dropped, also by a panic.
struct Turn<'a>(&'a List);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.collector.lock() = None;
        self.0.collected.notify_all();
    }
}

impl State {
    /// Whether nothing is in flight.
    pub(super) fn is_settled(&mut self) -> bool {
        if self
            .last
            .as_ref()
            .is_some_and(|event| matches!(event.is_complete(), Ok(true)))
        {
            self.last = None;
        }
        self.last.is_none() && self.unsignalled.is_none()
    }

    /// Notes that an operation without an event was appended; its number.
    pub(super) fn leave_unsignalled(&mut self) -> u64 {
        self.numbered += 1;
        self.unsignalled = Some(self.numbered);
        self.numbered
    }

    /// Takes out what finished operations held, for the caller to drop outside the lock: a drop may run anything.
    pub(super) fn take_done(&mut self) -> Vec<(Event, Box<dyn Any + Send>)> {
        let mut done = Vec::new();
        while let Some((event, _)) = self.in_flight.front()
            && matches!(event.is_complete(), Ok(true))
        {
            done.extend(self.in_flight.pop_front());
        }
        done
    }
}

impl Drop for List {
    fn drop(&mut self) {
        let State {
            last, in_flight, ..
        } = mem::take(self.state.get_mut());
        // A failure is told to the one who waits for the event; here all that matters is that nothing runs any more. On a
        // lost device nothing does, and each answer would take long.
        let mut events = in_flight.iter().map(|(event, _)| event).chain(&last);
        let _ = events.all(|event| event.finish().is_ok() || self.settle(event));
        // SAFETY: nothing is in flight, and this was the last owner.
        let _ = unsafe { call!(self.context.library(), zeCommandListDestroy(self.handle)) };
    }
}

/// The ordinal of the first group of engines that computes and copies; 0 when the device tells of none.
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
