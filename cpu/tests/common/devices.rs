//! The devices of a process, whatever their number.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::macro_metavars_in_unsafe
)]

use std::ffi::{CStr, c_char};
use std::ptr;

use super::common::{self, OK, Result, driver};
use level_zero_sys as sys;

pub type Device = sys::ze_device_handle_t;

pub const DEVICES: &str = "ZEUSM_CPU_DEVICES";
pub const TILES: &str = "ZEUSM_CPU_TILES";
pub const PEER_ACCESS: &str = "ZEUSM_CPU_PEER_ACCESS";

/// The text of a fixed-size field.
pub fn text(array: &[c_char]) -> String {
    let text = unsafe { CStr::from_ptr(array.as_ptr()) };
    text.to_str().unwrap().to_owned()
}

/// The names of the driver's extensions.
pub fn extensions() -> Vec<String> {
    let mut count = 0;
    ok!(zeDriverGetExtensionProperties(
        driver(),
        &raw mut count,
        ptr::null_mut()
    ));
    let mut all = vec![sys::ze_driver_extension_properties_t::default(); count as usize];
    ok!(zeDriverGetExtensionProperties(
        driver(),
        &raw mut count,
        all.as_mut_ptr()
    ));
    all.iter().map(|extension| text(&extension.name)).collect()
}

/// The devices of `zeDeviceGet`, or the sub-devices of one.
pub fn enumerate(of: Option<Device>) -> Vec<Device> {
    let list = |count: &mut u32, devices: *mut Device| match of {
        None => ok!(zeDeviceGet(driver(), count, devices)),
        Some(device) => ok!(zeDeviceGetSubDevices(device, count, devices)),
    };
    let mut count = 0;
    list(&mut count, ptr::null_mut());
    let mut devices = vec![ptr::null_mut(); count as usize];
    if count > 0 {
        list(&mut count, devices.as_mut_ptr());
    }
    devices
}

pub fn properties(device: Device) -> sys::ze_device_properties_t {
    let mut out = sys::ze_device_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        ..Default::default()
    };
    ok!(zeDeviceGetProperties(device, &raw mut out));
    out
}

pub fn memory(device: Device) -> u64 {
    let mut out = sys::ze_device_memory_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES,
        ..Default::default()
    };
    let mut count = 1;
    ok!(zeDeviceGetMemoryProperties(
        device,
        &raw mut count,
        &raw mut out
    ));
    out.totalSize
}

/// The runtime's description of the last error.
pub fn description() -> String {
    type Describe = unsafe extern "C" fn(sys::ze_driver_handle_t, *mut *const c_char) -> Result;
    let describe = common::extension::<Describe>(c"zeDriverGetLastErrorDescription").unwrap();
    let mut text = ptr::null();
    assert_eq!(unsafe { describe(driver(), &raw mut text) }, OK);
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}
