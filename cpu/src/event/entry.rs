//! The entry points of events on the host's side.

use std::sync::Arc;

use level_zero_sys as sys;

use super::{Event, EventPool, Traits};
use crate::answer::{Answer, ensure};
use crate::arguments::{descriptor, flags, output, structures};
use crate::clock::Deadline;
use crate::context::Context;
use crate::device;
use crate::handle::{register, resolve, retire};
use crate::newer::{self, ze_event_counter_based_desc_t};

structures! {
    sys::ze_event_desc_t = sys::ZE_STRUCTURE_TYPE_EVENT_DESC;
}

/// Sub-device, device and host.
const SCOPES: u32 = 0x7;

/// `zeEventCreate`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn create(
    pool: sys::ze_event_pool_handle_t,
    desc: *const sys::ze_event_desc_t,
    event: *mut sys::ze_event_handle_t,
) -> Answer {
    let owner = resolve::<EventPool>(pool)?;
    // SAFETY: the caller vouches for the pointers.
    let (desc, event) = unsafe { (descriptor(desc)?, output(event)?) };
    flags(desc.signal, SCOPES)?;
    flags(desc.wait, SCOPES)?;
    ensure(
        desc.index < owner.count(),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
    )?;
    *event = register(Arc::new(Event::new(Traits {
        pool: pool as usize,
        timed: owner.is_timed(),
        counter: owner.counter(),
        signal_scope: desc.signal,
        wait_scope: desc.wait,
    })))?;
    Ok(())
}

/// `zeEventCounterBasedCreate`: an event without a pool. It cannot be sent to another process.
///
/// # Safety
/// As for [`create`].
pub unsafe fn create_counter_based(
    context: sys::ze_context_handle_t,
    device: sys::ze_device_handle_t,
    desc: *const ze_event_counter_based_desc_t,
    event: *mut sys::ze_event_handle_t,
) -> Answer {
    resolve::<Context>(context)?;
    device::expect(device)?;
    // SAFETY: the caller vouches for the pointers.
    let (desc, event) = unsafe { (descriptor(desc)?, output(event)?) };
    flags(desc.flags, newer::EVENT_COUNTER_BASED_FLAGS)?;
    flags(desc.signal, SCOPES)?;
    flags(desc.wait, SCOPES)?;
    ensure(
        desc.flags & newer::ZE_EVENT_COUNTER_BASED_FLAG_IPC == 0,
        sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION,
    )?;
    *event = register(Arc::new(Event::new(Traits {
        pool: 0,
        timed: desc.flags & newer::EVENT_COUNTER_BASED_TIMED != 0,
        counter: Some(desc.flags),
        signal_scope: desc.signal,
        wait_scope: desc.wait,
    })))?;
    Ok(())
}

/// `zeEventGetCounterBasedFlags`: 0 for a regular event.
///
/// # Safety
/// As for [`create`].
pub unsafe fn counter_based_flags(event: sys::ze_event_handle_t, flags: *mut u32) -> Answer {
    let event = resolve::<Event>(event)?;
    // SAFETY: the caller vouches for the pointer.
    let flags = unsafe { output(flags) }?;
    *flags = event.traits.counter.unwrap_or(0);
    Ok(())
}

/// `zeEventDestroy`; work that still waits for it or is to signal it is not disturbed.
pub fn destroy(event: sys::ze_event_handle_t) -> Answer {
    retire::<Event>(event).map(drop)
}

/// An event that the host may set and reset: not a counter-based one.
fn regular(event: sys::ze_event_handle_t) -> Answer<Arc<Event>> {
    let event = resolve::<Event>(event)?;
    ensure(!event.is_counter(), sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    Ok(event)
}

/// `zeEventHostSignal`.
pub fn host_signal(event: sys::ze_event_handle_t) -> Answer {
    regular(event)?.set();
    Ok(())
}

/// `zeEventHostReset`.
pub fn host_reset(event: sys::ze_event_handle_t) -> Answer {
    regular(event)?.signal().reset();
    Ok(())
}

/// `zeEventQueryStatus`.
pub fn query_status(event: sys::ze_event_handle_t) -> Answer {
    host_synchronize(event, 0)
}

/// `zeEventHostSynchronize`, `timeout` in nanoseconds.
pub fn host_synchronize(event: sys::ze_event_handle_t, timeout: u64) -> Answer {
    let event = resolve::<Event>(event)?;
    let signal = event.signal();
    // The clock is read only where there is something to wait for.
    let done = signal.is_set() || signal.wait(Deadline::after(timeout));
    ensure(done, sys::ZE_RESULT_NOT_READY)
}

/// `zeEventGetEventPool`.
///
/// # Safety
/// As for [`create`].
pub unsafe fn event_pool(
    event: sys::ze_event_handle_t,
    pool: *mut sys::ze_event_pool_handle_t,
) -> Answer {
    let event = resolve::<Event>(event)?;
    // SAFETY: the caller vouches for the pointer.
    *unsafe { output(pool) }? = event.traits.pool as sys::ze_event_pool_handle_t;
    Ok(())
}

/// `zeEventGetSignalScope`.
///
/// # Safety
/// As for [`create`].
pub unsafe fn signal_scope(event: sys::ze_event_handle_t, scope: *mut u32) -> Answer {
    let event = resolve::<Event>(event)?;
    // SAFETY: the caller vouches for the pointer.
    *unsafe { output(scope) }? = event.traits.signal_scope;
    Ok(())
}

/// `zeEventGetWaitScope`.
///
/// # Safety
/// As for [`create`].
pub unsafe fn wait_scope(event: sys::ze_event_handle_t, scope: *mut u32) -> Answer {
    let event = resolve::<Event>(event)?;
    // SAFETY: the caller vouches for the pointer.
    *unsafe { output(scope) }? = event.traits.wait_scope;
    Ok(())
}
