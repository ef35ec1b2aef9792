//! The entry points of events on the host's side.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use level_zero_sys as sys;

use super::{Event, EventPool};
use crate::answer::{Answer, ensure};
use crate::arguments::{descriptor, flags, output, structures};
use crate::clock::Deadline;
use crate::engine::Signal;
use crate::handle::{register, resolve, retire};

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
    *event = register(Arc::new(Event {
        pool: owner,
        pool_handle: pool as usize,
        signal: Signal::default(),
        signal_scope: desc.signal,
        wait_scope: desc.wait,
        started: AtomicU64::new(0),
        ended: AtomicU64::new(0),
    }))?;
    Ok(())
}

/// `zeEventDestroy`; work that still waits for it or is to signal it is not disturbed.
pub fn destroy(event: sys::ze_event_handle_t) -> Answer {
    retire::<Event>(event).map(drop)
}

/// `zeEventHostSignal`.
pub fn host_signal(event: sys::ze_event_handle_t) -> Answer {
    resolve::<Event>(event)?.signal_from_host();
    Ok(())
}

/// `zeEventHostReset`.
pub fn host_reset(event: sys::ze_event_handle_t) -> Answer {
    resolve::<Event>(event)?.signal().reset();
    Ok(())
}

/// `zeEventQueryStatus`.
pub fn query_status(event: sys::ze_event_handle_t) -> Answer {
    host_synchronize(event, 0)
}

/// `zeEventHostSynchronize`, `timeout` in nanoseconds.
pub fn host_synchronize(event: sys::ze_event_handle_t, timeout: u64) -> Answer {
    let event = resolve::<Event>(event)?;
    ensure(
        event.signal().wait(Deadline::after(timeout)),
        sys::ZE_RESULT_NOT_READY,
    )
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
    *unsafe { output(pool) }? = event.pool_handle as sys::ze_event_pool_handle_t;
    Ok(())
}

/// `zeEventGetSignalScope`.
///
/// # Safety
/// As for [`create`].
pub unsafe fn signal_scope(event: sys::ze_event_handle_t, scope: *mut u32) -> Answer {
    let event = resolve::<Event>(event)?;
    // SAFETY: the caller vouches for the pointer.
    *unsafe { output(scope) }? = event.signal_scope;
    Ok(())
}

/// `zeEventGetWaitScope`.
///
/// # Safety
/// As for [`create`].
pub unsafe fn wait_scope(event: sys::ze_event_handle_t, scope: *mut u32) -> Answer {
    let event = resolve::<Event>(event)?;
    // SAFETY: the caller vouches for the pointer.
    *unsafe { output(scope) }? = event.wait_scope;
    Ok(())
}
