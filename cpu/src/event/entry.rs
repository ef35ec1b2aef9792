//! The entry points of events on the host's side.

use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions;

use super::object::{Attributes, Event};
use super::pool::EventPool;
use crate::abi::arguments::check_flags;
use crate::abi::entry::In;
use crate::abi::result::{ZeResult, ensure};
use crate::check;
use crate::context::Context;
use crate::device::Device;
use crate::engine::Signal;
use crate::handle::{Named, getters, hand_out};
use crate::system::clock::Deadline;

/// Sub-device, device and host.
const SCOPES: u32 = 0x7;
/// `ze_event_counter_based_flags_t` up to 1.17.
const COUNTER_BASED_FLAGS: u32 = 0x7f;
/// The flags of a counter-based event with timestamps.
pub const TIMED: u32 = extensions::ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP
    | extensions::ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP;

/// `zeEventCreate`.
pub fn create(
    Named(pool, handle): Named<EventPool>,
    desc: In<'_, sys::ze_event_desc_t>,
    event: &mut sys::ze_event_handle_t,
) -> ZeResult {
    check_flags(desc.signal, SCOPES)?;
    check_flags(desc.wait, SCOPES)?;
    ensure(
        desc.index < pool.count,
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
    )?;
    let attributes = Attributes {
        pool: handle as usize,
        timed: pool.is_timed(),
        counter: pool.counter,
        signal_scope: desc.signal,
        wait_scope: desc.wait,
    };
    let made = match pool.shared_signal(desc.index) {
        Some(signal) => Event::with_signal(attributes, signal),
        None => Event::new(attributes),
    };
    hand_out(made, event)
}

/// `zeEventCounterBasedCreate`: an event without a pool.
///
/// # Errors
/// `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE` for counters that the program manages.
pub fn create_counter_based(
    _: Arc<Context>,
    _: &'static Device,
    desc: In<'_, extensions::ze_event_counter_based_desc_t>,
    event: &mut sys::ze_event_handle_t,
) -> ZeResult {
    check_flags(desc.flags, COUNTER_BASED_FLAGS)?;
    check_flags(desc.signal, SCOPES)?;
    check_flags(desc.wait, SCOPES)?;
    // How the host waits is left to the runtime. Other structures, such as counters in memory of the program, change what sets
    // the event.
    let known = desc
        .chain()
        .all(|link| link.stype() == extensions::ZE_STRUCTURE_TYPE_EVENT_SYNC_MODE_DESC);
    ensure(known, sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)?;
    let made = Event::new(Attributes {
        pool: 0,
        timed: desc.flags & TIMED != 0,
        counter: Some(desc.flags),
        signal_scope: desc.signal,
        wait_scope: desc.wait,
    });
    hand_out(made, event)
}

/// Only the host's own events: not counter-based ones.
fn check_regular(event: &Event) -> ZeResult {
    ensure(!event.is_counter(), sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

/// `zeEventHostSignal`.
pub fn host_signal(event: Arc<Event>) -> ZeResult {
    check_regular(&event)?;
    if check::is_on() {
        let signal = event.signal();
        check::host_signals(signal.identity(), || signal.promise());
    }
    event.set();
    Ok(())
}

/// `zeEventHostReset`.
pub fn host_reset(event: Arc<Event>) -> ZeResult {
    check_regular(&event)?;
    let signal = event.signal();
    if check::is_on() {
        check::host_resets(signal.identity(), signal.is_promised());
    }
    signal.reset();
    Ok(())
}

/// `zeEventQueryStatus`. It does not report the errors of commands: a program that polls takes any of them for an event that
/// is not set, as SYCL does. While a graph records the command that signals it, it is not set.
pub fn query_status(event: Arc<Event>) -> ZeResult {
    ensure(event.captured_by() == 0, sys::ZE_RESULT_NOT_READY)?;
    wait(&event.signal(), 0)
}

/// `zeEventHostSynchronize`, `timeout` in nanoseconds.
pub fn host_synchronize(event: Arc<Event>, timeout: u64) -> ZeResult {
    let captured = extensions::ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED;
    ensure(event.captured_by() == 0, captured)?;
    let signal = event.signal();
    wait(&signal, timeout)?;
    signal.outcome()
}

/// Waits until the signal of an event or a fence is set.
pub fn wait(signal: &Signal, timeout: u64) -> ZeResult {
    // The clock is read only if there is something to wait for.
    let done = signal.is_set() || signal.wait(Deadline::after(timeout));
    if done && check::is_on() {
        check::waited_for_signal(signal.identity());
    }
    ensure(done, sys::ZE_RESULT_NOT_READY)
}

getters! { Event {
    /// `zeEventGetEventPool`.
    event_pool: sys::ze_event_pool_handle_t =
        |event| Ok(event.attributes.pool as sys::ze_event_pool_handle_t);
    /// `zeEventGetSignalScope`.
    signal_scope: u32 = |event| Ok(event.attributes.signal_scope);
    /// `zeEventGetWaitScope`.
    wait_scope: u32 = |event| Ok(event.attributes.wait_scope);
    /// `zeEventGetCounterBasedFlags`: 0 for a regular event.
    counter_based_flags: u32 = |event| Ok(event.attributes.counter.unwrap_or(0));
}}
