//! Initialisation: registers the fork handlers and initialises the driver.

use std::ffi::CStr;

use level_zero_sys as sys;
use level_zero_sys::extensions;

use crate::abi::arguments::{check_flags, enumerate, input_structure, output};
use crate::abi::result::{ZeResult, ensure};
use crate::system::environment;
use crate::{check, device, driver, engine, fork, opencl};

/// The variable by which SYCL 2024 uses immediate command lists, which it reads after `zeInit`. Later versions of SYCL decide by
/// the version of the architecture.
const IMMEDIATE_LISTS: &CStr = c"SYCL_PI_LEVEL_ZERO_USE_IMMEDIATE_COMMANDLISTS";

/// The variable by which SYCL's first adapter unlocks a queue while a thread waits for it. Commands that other threads submit
/// meanwhile count as complete after the wait, and their events are used again while they execute.
const UNLOCKED_WAITS: &CStr = c"UR_L0_QUEUE_SYNCHRONIZE_NON_BLOCKING";

fn begin() -> ZeResult {
    device::check_environment()?;
    fork::register_handlers();
    opencl::quiesce::before_exit(engine::flush_all);
    opencl::name_instruction_set();
    environment::set_default(IMMEDIATE_LISTS, c"1");
    environment::set_default(UNLOCKED_WAITS, c"0");
    check::begin();
    driver::begin();
    Ok(())
}

/// `zeInit`; asking for other kinds of drivers only leaves none.
pub fn init(wanted: sys::ze_init_flags_t) -> ZeResult {
    let (gpu, vpu) = (sys::ZE_INIT_FLAG_GPU_ONLY.0, sys::ZE_INIT_FLAG_VPU_ONLY.0);
    check_flags(wanted, gpu | vpu)?;
    ensure(wanted != vpu, sys::ZE_RESULT_ERROR_UNINITIALIZED)?;
    begin()
}

/// `zeInitDrivers`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn init_drivers(
    count: *mut u32,
    drivers: *mut sys::ze_driver_handle_t,
    desc: *mut extensions::ze_init_driver_type_desc_t,
) -> ZeResult {
    // SAFETY: the caller vouches for the pointers.
    let wanted = unsafe {
        output(count)?;
        input_structure(desc.cast_const())?.flags
    };
    ensure(wanted != 0, sys::ZE_RESULT_ERROR_INVALID_ENUMERATION)?;
    let ours = if wanted & extensions::ZE_INIT_DRIVER_TYPE_FLAG_GPU != 0 {
        begin()?;
        &[driver::handle()][..]
    } else {
        &[]
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { enumerate(count, drivers, ours) }
}
