//! The times of the command that signalled an event.

use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions::{
    ze_event_query_kernel_timestamps_results_ext_properties_t,
    ze_synchronized_timestamp_data_ext_t, ze_synchronized_timestamp_result_ext_t,
};

use super::object::Event;
use crate::abi::entry::{In, Room, check};
use crate::abi::result::{ZeResult, ensure};
use crate::check;
use crate::device::Device;
use crate::engine::Signal;

impl Event {
    /// The kernel timestamp, for the host, which knows then that the command is complete.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when its pool keeps none, `ZE_RESULT_NOT_READY` before it is signalled.
    fn timestamp(&self) -> ZeResult<sys::ze_kernel_timestamp_result_t> {
        ensure(self.is_timed(), sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        let signal = self.signal();
        let timestamp = timestamp(&signal).ok_or(sys::ZE_RESULT_NOT_READY)?;
        if check::is_on() {
            check::waited_for_signal(signal.identity());
        }
        Ok(timestamp)
    }
}

/// The kernel timestamp of the command that set a signal last; `None` while it is not set.
pub fn timestamp(signal: &Signal) -> Option<sys::ze_kernel_timestamp_result_t> {
    let (start, end) = signal.times()?;
    let data = sys::ze_kernel_timestamp_data_t {
        kernelStart: start,
        kernelEnd: end,
    };
    Some(sys::ze_kernel_timestamp_result_t {
        global: data,
        context: data,
    })
}

/// `zeEventQueryKernelTimestamp`.
pub fn query_kernel_timestamp(
    event: Arc<Event>,
    result: &mut sys::ze_kernel_timestamp_result_t,
) -> ZeResult {
    *result = event.timestamp()?;
    Ok(())
}

/// `zeEventQueryTimestampsExp`: one timestamp for each device and sub-device, so one.
pub fn query_timestamps(
    event: Arc<Event>,
    _: &'static Device,
    results: Room<'_, sys::ze_kernel_timestamp_result_t>,
) -> ZeResult {
    for result in results.places(1)? {
        *result = event.timestamp()?;
    }
    Ok(())
}

/// `zeEventQueryKernelTimestampsExt`: likewise, with the host's clock beside the device's. They are the same clock.
pub fn query_kernel_timestamps(
    event: Arc<Event>,
    _: &'static Device,
    count: &mut u32,
    results: Option<In<'_, ze_event_query_kernel_timestamps_results_ext_properties_t>>,
) -> ZeResult {
    let room = *count;
    *count = 1;
    let (true, Some(results)) = (room > 0, results) else {
        return Ok(());
    };
    let timestamp = event.timestamp()?;
    // SAFETY: the structure is valid, with all that it refers to: room for the results.
    let (kernel, host): (Option<&mut _>, Option<&mut _>) = unsafe {
        (
            check(results.pKernelTimestampsBuffer)?,
            check(results.pSynchronizedTimestampsBuffer)?,
        )
    };
    if let Some(kernel) = kernel {
        *kernel = timestamp;
    }
    if let Some(host) = host {
        *host = ze_synchronized_timestamp_result_ext_t {
            global: synchronized(timestamp.global),
            context: synchronized(timestamp.context),
        };
    }
    Ok(())
}

fn synchronized(data: sys::ze_kernel_timestamp_data_t) -> ze_synchronized_timestamp_data_ext_t {
    ze_synchronized_timestamp_data_ext_t {
        kernelStart: data.kernelStart,
        kernelEnd: data.kernelEnd,
    }
}
