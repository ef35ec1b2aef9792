//! The runtime's own extensions, `ZEUSM_experimental_devices`, `ZEUSM_experimental_forks` and `ZEUSM_experimental_module_cache`.

use std::ffi::c_char;

use level_zero_sys as sys;

use crate::abi::entry::Bytes;
use crate::abi::result::ZeResult;
use crate::ddi::declare::functions;
use crate::driver::Driver;
use crate::{announcement, device, module};

functions! {
    zeusmDriverPresentDevices(
        driver: sys::ze_driver_handle_t,
        gpus: u32,
        cpu: sys::ze_bool_t,
        tiles: u32,
        peer_access: sys::ze_bool_t,
    ) => present_devices;
    zeusmDriverRequireForkAnnouncements(driver: sys::ze_driver_handle_t) => require_announcements;
    zeusmDriverAnnounceFork(driver: sys::ze_driver_handle_t) => announce_fork;
    zeusmDriverDescribeModuleCache(
        driver: sys::ze_driver_handle_t,
        [size: *mut usize] text: *mut c_char,
    ) => describe_module_cache;
}

/// Presents `gpus` GPUs with `tiles` tiles each, and a CPU unless `cpu` is 0, with peer access unless that is 0, in place of what
/// `ZEUSM_CPU_DEVICES`, `ZEUSM_CPU_TILES` and `ZEUSM_CPU_PEER_ACCESS` say. It must be called before the first call of
/// `zeDeviceGet`.
fn present_devices(
    _: Driver,
    gpus: u32,
    cpu: sys::ze_bool_t,
    tiles: u32,
    peer_access: sys::ze_bool_t,
) -> ZeResult {
    device::present(gpus, cpu != 0, tiles, peer_access != 0)
}

/// From now on, a fork waits for kernels in flight only if its thread has announced it. The child of a fork that is not announced
/// is expected to start another program.
fn require_announcements(_: Driver) -> ZeResult {
    announcement::require();
    Ok(())
}

/// Announces the next fork of the calling thread, whose child may use the runtime.
fn announce_fork(_: Driver) -> ZeResult {
    announcement::announce();
    Ok(())
}

/// Says in words what built modules are kept on disk, or why there are none: the size of the text, and the text as by
/// `zeModuleBuildLogGetString`.
fn describe_module_cache(_: Driver, place: Bytes<'_>) -> ZeResult {
    place.write_text(&module::describe_cache())
}
