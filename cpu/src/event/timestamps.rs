//! The times of the command that signalled an event.

use level_zero_sys as sys;
use level_zero_sys::extensions::{
    ze_event_query_kernel_timestamps_results_ext_properties_t,
    ze_synchronized_timestamp_data_ext_t, ze_synchronized_timestamp_result_ext_t,
};

use super::object::Event;
use crate::abi::arguments::{optional_output, output, output_structure};
use crate::abi::result::{ZeResult, ensure};
use crate::check;
use crate::device;
use crate::engine::Signal;
use crate::handle::resolve;

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
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn query_kernel_timestamp(
    event: sys::ze_event_handle_t,
    result: *mut sys::ze_kernel_timestamp_result_t,
) -> ZeResult {
    let event = resolve::<Event>(event)?;
    // SAFETY: the caller vouches for the pointer.
    *unsafe { output(result) }? = event.timestamp()?;
    Ok(())
}

/// `zeEventQueryTimestampsExp`: one timestamp for each device and sub-device, so one.
///
/// # Safety
/// As for [`query_kernel_timestamp`].
pub unsafe fn query_timestamps(
    event: sys::ze_event_handle_t,
    device: sys::ze_device_handle_t,
    count: *mut u32,
    results: *mut sys::ze_kernel_timestamp_result_t,
) -> ZeResult {
    let event = resolve::<Event>(event)?;
    device::find(device)?;
    // SAFETY: the caller vouches for the pointers.
    let (count, results) = unsafe { (output(count)?, optional_output(results)?) };
    let room = *count;
    *count = 1;
    if let (true, Some(result)) = (room > 0, results) {
        *result = event.timestamp()?;
    }
    Ok(())
}

/// `zeEventQueryKernelTimestampsExt`: likewise, with the host's clock beside the device's. They are the same clock.
///
/// # Safety
/// As for [`query_kernel_timestamp`]; the buffers that `results` names must have room for `*count` results.
pub unsafe fn query_kernel_timestamps(
    event: sys::ze_event_handle_t,
    device: sys::ze_device_handle_t,
    count: *mut u32,
    results: *mut ze_event_query_kernel_timestamps_results_ext_properties_t,
) -> ZeResult {
    let event = resolve::<Event>(event)?;
    device::find(device)?;
    // SAFETY: the caller vouches for the pointer.
    let count = unsafe { output(count) }?;
    let room = *count;
    *count = 1;
    if room == 0 || results.is_null() {
        return Ok(());
    }
    let timestamp = event.timestamp()?;
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let results = output_structure(results)?;
        if let Some(kernel) = optional_output(results.pKernelTimestampsBuffer)? {
            *kernel = timestamp;
        }
        if let Some(host) = optional_output(results.pSynchronizedTimestampsBuffer)? {
            *host = ze_synchronized_timestamp_result_ext_t {
                global: synchronized(timestamp.global),
                context: synchronized(timestamp.context),
            };
        }
    }
    Ok(())
}

fn synchronized(data: sys::ze_kernel_timestamp_data_t) -> ze_synchronized_timestamp_data_ext_t {
    ze_synchronized_timestamp_data_ext_t {
        kernelStart: data.kernelStart,
        kernelEnd: data.kernelEnd,
    }
}
