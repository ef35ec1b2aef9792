//! The runtime's own extensions, `ZEUSM_experimental_devices` and `ZEUSM_experimental_module_cache`.

use std::ffi::c_char;

use level_zero_sys as sys;

use crate::ddi::declare::functions;
use crate::{device, module};

functions! {
    zeusmDriverPresentDevices(
        driver: sys::ze_driver_handle_t,
        gpus: u32,
        cpu: sys::ze_bool_t,
        tiles: u32,
        peer_access: sys::ze_bool_t,
    ) => device::present;
    zeusmDriverDescribeModuleCache(
        driver: sys::ze_driver_handle_t,
        [size: *mut usize] text: *mut c_char,
    ) => module::describe_cache;
}
