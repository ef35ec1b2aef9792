//! The devices, which share the machine's processors and memory, and their properties.
//!
//! `layout` reads which devices are presented, with `mask`; `list` makes them.

mod compute;
mod layout;
mod list;
mod mask;
mod memory;
mod pci;
mod peers;
mod properties;
mod queues;

use std::env;

use level_zero_sys as sys;

use crate::abi::arguments::{enumerate, output};
use crate::abi::result::ZeResult;
use crate::driver;
use crate::system::clock;

pub use compute::{compute, image, module, vector_width};
pub use list::{Device, find, present};
pub use memory::{cache, check_external, external_memory, memory, memory_access};
pub use pci::pci;
pub use peers::{can_access_peer, p2p};
pub use properties::{MUTABLE_FLAGS, device_properties};
pub use queues::{MAX_FILL_PATTERN, QueueGroup, check_queue, queue_groups};
use zeusm_process::Lazy;
use zeusm_process::variables::{InvalidVariable, switch};

/// With `1`, the devices are reported as discrete ones, whose shared memory the host and the device must not access
/// concurrently, as by Intel's driver. For tests.
const DISCRETE: &str = "ZEUSM_CPU_DISCRETE";

fn is_discrete() -> bool {
    static IS_DISCRETE: Lazy<bool> = Lazy::new();
    *IS_DISCRETE.get_or_make(|| read_discreteness().unwrap_or_default())
}

/// The variable's value.
fn read_discreteness() -> Result<bool, InvalidVariable> {
    Ok(switch(env::var_os, DISCRETE)?.unwrap_or_default())
}

/// Checks the variables that describe devices.
///
/// # Errors
/// For a value that cannot be used.
pub fn check_variables() -> Result<(), InvalidVariable> {
    read_discreteness()?;
    list::check_variables()
}

/// Whether the host and the devices may access one word of shared memory atomically at the same time.
pub fn has_system_atomics() -> bool {
    !is_discrete()
}

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
