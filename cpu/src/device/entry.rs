//! The entry points that list devices, and those without a property.

use level_zero_sys as sys;

use super::list::{self, Device, find};
use crate::abi::arguments::{enumerate, output};
use crate::abi::result::ZeResult;
use crate::driver;
use crate::system::clock;

/// `zeDeviceGet`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn get(
    driver: sys::ze_driver_handle_t,
    count: *mut u32,
    devices: *mut sys::ze_device_handle_t,
) -> ZeResult {
    driver::expect(driver)?;
    // SAFETY: the caller vouches for the pointers.
    unsafe { enumerate(count, devices, &list::listed()) }
}

/// `zeDeviceGetSubDevices`: the visible tiles of a GPU.
///
/// # Safety
/// As for [`get`].
pub unsafe fn sub_devices(
    device: sys::ze_device_handle_t,
    count: *mut u32,
    devices: *mut sys::ze_device_handle_t,
) -> ZeResult {
    let device = find(device)?;
    // SAFETY: the caller vouches for the pointers.
    unsafe { enumerate(count, devices, &device.sub_devices()) }
}

/// `zeDeviceGetRootDevice`: null for a device that is no sub-device.
///
/// # Safety
/// As for [`get`].
pub unsafe fn root_device(
    device: sys::ze_device_handle_t,
    root: *mut sys::ze_device_handle_t,
) -> ZeResult {
    let found = find(device)?.root();
    // SAFETY: the caller vouches for the pointer.
    *unsafe { output(root) }? = found.map_or(std::ptr::null_mut(), Device::handle);
    Ok(())
}

/// `zeDeviceGetStatus`.
pub fn status(device: sys::ze_device_handle_t) -> ZeResult {
    find(device).map(drop)
}

/// `zeDeviceGetGlobalTimestamps`: one reading for both, as host and device share the clock.
///
/// # Safety
/// As for [`get`].
pub unsafe fn global_timestamps(
    device: sys::ze_device_handle_t,
    host: *mut u64,
    on_device: *mut u64,
) -> ZeResult {
    find(device)?;
    // SAFETY: the caller vouches for the pointers.
    let (host, on_device) = unsafe { (output(host)?, output(on_device)?) };
    let now = clock::now();
    *host = now;
    *on_device = now;
    Ok(())
}
