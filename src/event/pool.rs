//! The pools that events come from.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use level_zero_sys as sys;
use once_cell::race::OnceBox;
use zeusm_process::{Condvar, Mutex, Owned};

use super::{Event, Inner};
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::pool::retry_out_of_memory;

/// The number of events in a Level Zero event pool.
const EVENTS_PER_POOL: u32 = 64;

/// Allocates events from Level Zero's event pools, and reuses them.
#[derive(Debug)]
pub(crate) struct EventPool {
    pub(super) context: Context,
    pub(super) device: Device,
    pub(super) state: Mutex<State>,
    /// Wakes the threads that wait for the submission of one of its events.
    pub(super) submitted: Condvar,
    pub(super) submission: Mutex<()>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pools: Vec<sys::ze_event_pool_handle_t>,
    events: Vec<sys::ze_event_handle_t>,
    pub(super) free: Vec<sys::ze_event_handle_t>,
}

// SAFETY: handles may be used from any thread, and the mutex orders changes to the lists.
unsafe impl Send for EventPool {}
// SAFETY: as above.
unsafe impl Sync for EventPool {}

impl EventPool {
    pub(crate) fn new(context: &Context, device: &Device) -> Arc<Self> {
        Arc::new(Self {
            context: context.clone(),
            device: device.clone(),
            state: Mutex::default(),
            submitted: Condvar::default(),
            submission: Mutex::default(),
        })
    }

    /// An unused event, not signalled. A clone of it has to live until every operation that signals it, or waits for it, is
    /// complete. If a new pool of events needs memory, zeusm's pools of memory return theirs; the caller holds no lock, as
    /// that may call into Python.
    pub(crate) fn take(self: &Arc<Self>) -> Result<Event> {
        retry_out_of_memory(|| self.take_at_once())
    }

    /// Makes an event for a later [`take_at_once`](Self::take_at_once), unless another thread takes it.
    pub(crate) fn reserve(self: &Arc<Self>) -> Result<()> {
        self.take().map(drop)
    }

    /// As [`take`](Self::take), without memory from pools: for a caller with a lock.
    pub(crate) fn take_at_once(self: &Arc<Self>) -> Result<Event> {
        let mut state = self.state.lock();
        if state.free.is_empty() {
            self.grow(&mut state)?;
        }
        let Some(handle) = state.free.pop() else {
            return Err(Error::Call {
                function: "zeEventCreate",
                result: sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
            });
        };
        drop(state);
        // From now on, the drop returns the event to the free list.
        let event = Event(Arc::new(Owned::new(Inner {
            handle,
            pool: Arc::clone(self),
            is_submitted: AtomicBool::new(false),
            failure: OnceBox::new(),
            number: AtomicU64::new(0),
        })));
        // SAFETY: the event has no other owner.
        unsafe { call!(self.context.library(), zeEventHostReset(handle)) }?;
        Ok(event)
    }

    fn grow(&self, state: &mut State) -> Result<()> {
        let library = self.context.library();
        let description = sys::ze_event_pool_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
            flags: sys::ZE_EVENT_POOL_FLAG_HOST_VISIBLE.0
                | sys::ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP.0,
            count: EVENTS_PER_POOL,
            ..Default::default()
        };
        let mut pool = ptr::null_mut();
        // For all devices, as the lists of another one may wait for the events. SAFETY: the context is alive; no devices are
        // passed with a count of zero.
        unsafe {
            call!(
                library,
                zeEventPoolCreate(
                    self.context.handle(),
                    &description,
                    0,
                    ptr::null_mut(),
                    &mut pool
                )
            )
        }?;
        state.pools.push(pool);
        for index in 0..EVENTS_PER_POOL {
            let description = sys::ze_event_desc_t {
                stype: sys::ZE_STRUCTURE_TYPE_EVENT_DESC,
                index,
                signal: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
                wait: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
                ..Default::default()
            };
            let mut event = ptr::null_mut();
            // SAFETY: the pool is alive and each index is used once.
            unsafe { call!(library, zeEventCreate(pool, &description, &mut event)) }?;
            state.events.push(event);
            state.free.push(event);
        }
        Ok(())
    }
}

impl Drop for EventPool {
    fn drop(&mut self) {
        let library = self.context.library();
        let state = self.state.get_mut();
        for &event in &state.events {
            // SAFETY: every `Event` has a reference to this pool, so none is in use.
            let _ = unsafe { call!(library, zeEventDestroy(event)) };
        }
        for &pool in &state.pools {
            // SAFETY: its events are destroyed.
            let _ = unsafe { call!(library, zeEventPoolDestroy(pool)) };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use super::*;
    use crate::Runtime;

    #[test]
    #[cfg_attr(windows, ignore = "the CPU runtime is for Linux")]
    fn dropped_events_are_reused() {
        let device = Runtime::get().unwrap().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let events = EventPool::new(&context, &device);
        let count = EVENTS_PER_POOL as usize;
        let mut taken: Vec<_> = (0..count).map(|_| events.take().unwrap()).collect();
        let handles: BTreeSet<_> = taken.iter().map(Event::handle).collect();
        assert_eq!(handles.len(), count);
        for _ in 0..100 {
            taken[0].signal().unwrap();
            drop(taken.swap_remove(0));
            let next = events.take().unwrap();
            assert!(handles.contains(&next.handle()));
            assert!(!next.is_complete().unwrap(), "it was reset");
            taken.push(next);
        }
        let one_more = events.take().unwrap();
        assert!(!handles.contains(&one_more.handle()));
        assert_eq!(events.state.lock().pools.len(), 2);
    }
}
