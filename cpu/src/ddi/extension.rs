//! The runtime's own extensions, `ZEUSM_experimental_devices` and `ZEUSM_experimental_forks`.

use std::ffi::c_void;

use level_zero_sys as sys;

use crate::abi::result::entry_point;
use crate::announcement;
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

/// From now on, a fork waits for kernels in flight only if its thread has announced it. The child of a fork that is not announced
/// is expected to start another program.
pub extern "C" fn zeusmDriverRequireForkAnnouncements(
    driver: sys::ze_driver_handle_t,
) -> sys::ze_result_t {
    entry_point(|| {
        driver::expect(driver)?;
        announcement::require();
        Ok(())
    })
}

/// Announces the next fork of the calling thread, whose child may use the runtime.
pub extern "C" fn zeusmDriverAnnounceFork(driver: sys::ze_driver_handle_t) -> sys::ze_result_t {
    entry_point(|| {
        driver::expect(driver)?;
        announcement::announce();
        Ok(())
    })
}

/// The address of a function of the extensions.
pub(super) fn address(name: &str) -> Option<*const c_void> {
    match name {
        "zeusmDriverPresentDevices" => Some(zeusmDriverPresentDevices as *const c_void),
        "zeusmDriverRequireForkAnnouncements" => {
            Some(zeusmDriverRequireForkAnnouncements as *const c_void)
        }
        "zeusmDriverAnnounceFork" => Some(zeusmDriverAnnounceFork as *const c_void),
        _ => None,
    }
}
