//! The runtime's own extensions, `ZEUSM_experimental_devices` and `ZEUSM_experimental_forks`.

use level_zero_sys as sys;

use crate::abi::result::ZeResult;
use crate::ddi::declare::functions;
use crate::driver::Driver;
use crate::{announcement, device};

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
