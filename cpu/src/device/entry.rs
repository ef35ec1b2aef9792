//! The entry points that list devices, and those without a property.

use level_zero_sys as sys;

use super::list::{self, Device};
use crate::abi::arguments::enumerate;
use crate::abi::result::ZeResult;
use crate::driver::Driver;
use crate::system::clock;

/// `zeDeviceGet`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn get(_: Driver, count: *mut u32, devices: *mut sys::ze_device_handle_t) -> ZeResult {
    // SAFETY: the caller vouches for the pointers.
    unsafe { enumerate(count, devices, &list::listed()) }
}

/// `zeFabricVertexGetExp`: no fabric connects devices.
///
/// # Safety
/// As for [`get`].
pub unsafe fn fabric_vertices(
    _: Driver,
    count: *mut u32,
    vertices: *mut sys::ze_fabric_vertex_handle_t,
) -> ZeResult {
    // SAFETY: the caller vouches for the pointers.
    unsafe { enumerate(count, vertices, &[]) }
}

/// `zeDeviceGetSubDevices`: the visible tiles of a GPU.
///
/// # Safety
/// As for [`get`].
pub unsafe fn sub_devices(
    device: &'static Device,
    count: *mut u32,
    devices: *mut sys::ze_device_handle_t,
) -> ZeResult {
    // SAFETY: the caller vouches for the pointers.
    unsafe { enumerate(count, devices, &device.sub_devices()) }
}

/// `zeDeviceGetRootDevice`: null for a device that is no sub-device.
pub fn root_device(device: &'static Device, root: &mut sys::ze_device_handle_t) -> ZeResult {
    *root = device.root().map_or(std::ptr::null_mut(), Device::handle);
    Ok(())
}

/// `zeDeviceGetStatus`.
pub fn status(_: &'static Device) -> ZeResult {
    Ok(())
}

/// `zeDeviceGetGlobalTimestamps`: one reading for both, as host and device share the clock.
pub fn global_timestamps(_: &'static Device, host: &mut u64, on_device: &mut u64) -> ZeResult {
    let now = clock::now();
    *host = now;
    *on_device = now;
    Ok(())
}
