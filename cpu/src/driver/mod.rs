//! The driver: there is one, with all devices.

pub mod extensions;

use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};

use level_zero_sys as sys;

use crate::abi::entry::{Argument, Out, Room};
use crate::abi::result::{ZeResult, description, ensure};
use crate::handle::{self, Kind};
use crate::memory;
use crate::system::processor;

/// The version of the core specification that the driver implements: 1.17.
pub const API_VERSION: u32 = 1 << 16 | 17;

static INITIALISED: AtomicBool = AtomicBool::new(false);

/// The driver's handle.
pub fn handle() -> sys::ze_driver_handle_t {
    handle::permanent(Kind::Driver, 0) as sys::ze_driver_handle_t
}

/// `Ok` when `driver` is the driver and it has been initialised.
pub fn expect(driver: sys::ze_driver_handle_t) -> ZeResult {
    expect_initialised()?;
    let number = handle::permanent_number(Kind::Driver, driver)?;
    ensure(number == 0, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

/// The driver, which has been initialised.
pub struct Driver;

impl Argument<sys::ze_driver_handle_t> for Driver {
    unsafe fn check(raw: sys::ze_driver_handle_t) -> ZeResult<Self> {
        expect(raw).map(|()| Self)
    }
}

/// `Ok` when the driver has been initialised.
pub fn expect_initialised() -> ZeResult {
    ensure(
        INITIALISED.load(Ordering::Acquire),
        sys::ZE_RESULT_ERROR_UNINITIALIZED,
    )
}

/// Marks the driver as initialised.
pub fn begin() {
    INITIALISED.store(true, Ordering::Release);
}

/// `zeDriverGet`.
pub fn get(drivers: Room<'_, sys::ze_driver_handle_t>) -> ZeResult {
    expect_initialised()?;
    drivers.fill(&[handle()])
}

/// `zeDriverGetApiVersion`.
pub fn api_version(_: Driver, version: &mut sys::ze_api_version_t) -> ZeResult {
    *version = sys::ze_api_version_t(API_VERSION);
    Ok(())
}

/// `zeDriverGetProperties`: the version is the crate's, as major, minor and build in 8, 8 and 16 bits.
pub fn driver_properties(
    _: Driver,
    mut properties: Out<'_, sys::ze_driver_properties_t>,
) -> ZeResult {
    properties.uuid.id = processor::identity();
    properties.driverVersion = version();
    Ok(())
}

fn version() -> u32 {
    let mut fields = env!("CARGO_PKG_VERSION")
        .split('.')
        .map(|field| field.parse().unwrap_or(0));
    let mut next = || fields.next().unwrap_or(0);
    let (major, minor, build): (u32, u32, u32) = (next(), next(), next());
    major << 24 | minor << 16 | build
}

/// `zeDriverGetIpcProperties`: event pools can be passed between processes where the system has memory files, and memory
/// where it can be moved into one.
pub fn ipc_properties(
    _: Driver,
    mut properties: Out<'_, sys::ze_driver_ipc_properties_t>,
) -> ZeResult {
    properties.flags = 0;
    if memory::can_be_exported() {
        properties.flags |= sys::ZE_IPC_PROPERTY_FLAG_MEMORY.0;
    }
    if memory::has_memory_files() {
        properties.flags |= sys::ZE_IPC_PROPERTY_FLAG_EVENT_POOL.0;
    }
    Ok(())
}

/// `zeDriverGetExtensionProperties`.
pub fn extension_properties(
    _: Driver,
    properties: Room<'_, sys::ze_driver_extension_properties_t>,
) -> ZeResult {
    properties.fill(&extensions::all())
}

/// `zeDriverGetLastErrorDescription`: of the calling thread; valid until its next failing call. Before the initialisation, and
/// so after one that failed, there is no driver, and null is accepted for it.
pub fn last_error(driver: sys::ze_driver_handle_t, text: &mut *const c_char) -> ZeResult {
    if !driver.is_null() || expect_initialised().is_ok() {
        expect(driver)?;
    }
    *text = description();
    Ok(())
}
