//! The runtime's own extension `ZEUSM_experimental_devices`, which has one function.

use std::ffi::c_void;

use level_zero_sys as sys;

use crate::abi::result::entry_point;
use crate::{device, driver};

/// Presents `gpus` GPUs with `tiles` tiles each, with peer access unless that is 0, in place of what `ZEUSM_CPU_DEVICES`,
/// `ZEUSM_CPU_TILES` and `ZEUSM_CPU_PEER_ACCESS` say. It must be called before the first call of `zeDeviceGet`.
pub extern "C" fn zeusmDriverPresentDevices(
    driver: sys::ze_driver_handle_t,
    gpus: u32,
    tiles: u32,
    peer_access: sys::ze_bool_t,
) -> sys::ze_result_t {
    entry_point(|| {
        driver::expect(driver)?;
        device::present(gpus, tiles, peer_access != 0)
    })
}

/// The address of the extension's function.
pub(super) fn address(name: &str) -> Option<*const c_void> {
    (name == "zeusmDriverPresentDevices").then_some(zeusmDriverPresentDevices as *const c_void)
}
