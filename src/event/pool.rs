//! The pools that events come from.

use std::ptr;
use std::sync::Arc;

use level_zero_sys as sys;
use zeusm_process::{Condvar, Mutex};

use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};

/// The number of events in a Level Zero event pool.
pub(super) const EVENTS_PER_POOL: u32 = 64;

/// Allocates events from Level Zero's event pools, and reuses them.
#[derive(Debug)]
pub(crate) struct EventPool {
    pub(super) context: Context,
    pub(super) device: Device,
    state: Mutex<State>,
    /// Wakes the threads that wait for the submission of one of its events.
    pub(super) submitted: Condvar,
    pub(super) submission: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    pools: Vec<sys::ze_event_pool_handle_t>,
    events: Vec<sys::ze_event_handle_t>,
    free: Vec<sys::ze_event_handle_t>,
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

    /// The handle of an unused event.
    pub(super) fn take_handle(&self) -> Result<sys::ze_event_handle_t> {
        let mut state = self.state.lock();
        if state.free.is_empty() {
            self.grow(&mut state)?;
        }
        state.free.pop().ok_or(Error::Call {
            function: "zeEventCreate",
            result: sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
        })
    }

    /// Takes a handle back that no operation uses.
    pub(super) fn put_back(&self, handle: sys::ze_event_handle_t) {
        self.state.lock().free.push(handle);
    }

    fn grow(&self, state: &mut State) -> Result<()> {
        let timestamps = sys::ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP.0;
        let pool = create_pool(&self.context, timestamps, EVENTS_PER_POOL)?;
        state.pools.push(pool);
        for index in 0..EVENTS_PER_POOL {
            let mut event = ptr::null_mut();
            // SAFETY: the pool is alive and each index is used once.
            unsafe { create_event(&self.context, pool, index, &mut event) }?;
            state.events.push(event);
            state.free.push(event);
        }
        Ok(())
    }
}

/// Makes one of Level Zero's pools, whose events the host sees: for all devices, as the lists of another one may wait for them.
pub(crate) fn create_pool(
    context: &Context,
    flags: u32,
    count: u32,
) -> Result<sys::ze_event_pool_handle_t> {
    let description = sys::ze_event_pool_desc_t {
        flags: sys::ZE_EVENT_POOL_FLAG_HOST_VISIBLE.0 | flags,
        count,
        ..sys::structure()
    };
    let (context, library) = (context.handle(), context.library());
    let mut pool = ptr::null_mut();
    // SAFETY: the context is alive; no devices are passed with a count of zero.
    unsafe {
        call!(
            library,
            zeEventPoolCreate(context, &description, 0, ptr::null_mut(), &mut pool)
        )
    }?;
    Ok(pool)
}

/// Makes an event of a pool.
///
/// # Safety
/// The pool must be alive, and of the context; each index is used once in this process.
pub(crate) unsafe fn create_event(
    context: &Context,
    pool: sys::ze_event_pool_handle_t,
    index: u32,
    event: &mut sys::ze_event_handle_t,
) -> Result<()> {
    let description = sys::ze_event_desc_t {
        index,
        signal: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
        wait: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
        ..sys::structure()
    };
    // SAFETY: as for this function.
    unsafe { call!(context.library(), zeEventCreate(pool, &description, event)) }
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
