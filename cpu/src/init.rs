//! Initialisation: of what the system needs, and of the driver.

#[cfg(target_os = "linux")]
#[path = "init/linux.rs"]
mod platform;
#[cfg(windows)]
#[path = "init/windows.rs"]
mod platform;

use std::ffi::CStr;
use std::io::{self, Write};

use level_zero_sys as sys;
use level_zero_sys::extensions;
use zeusm_process::Lazy;

use crate::abi::arguments::check_flags;
use crate::abi::entry::{In, Room};
use crate::abi::result::{ZeResult, described, ensure};
use crate::abi::strictness::read_strictness;
use crate::system::environment;
use crate::{check, compiler, device, driver, engine, module, opencl};

/// The variable by which SYCL 2024 uses immediate command lists, which it reads after `zeInit`. Later versions of SYCL decide by
/// the version of the architecture.
const IMMEDIATE_LISTS: &CStr = c"SYCL_PI_LEVEL_ZERO_USE_IMMEDIATE_COMMANDLISTS";

/// The variable by which SYCL's first adapter unlocks a queue while a thread waits for it. Commands that other threads submit
/// meanwhile count as complete after the wait, and their events are used again while they execute.
const UNLOCKED_WAITS: &CStr = c"UR_L0_QUEUE_SYNCHRONIZE_NON_BLOCKING";

/// Checks the runtime's variables, each of which is read where it is used.
///
/// # Errors
/// `ZE_RESULT_ERROR_UNINITIALIZED` for a value that cannot be used, which is described and, as many programs do not ask for
/// the description, also written to the standard error, once.
fn check_variables() -> ZeResult {
    static ERROR: Lazy<Option<String>> = Lazy::new();
    let error = ERROR.get_or_make(|| {
        let found = device::check_variables()
            .and_then(|()| read_strictness().map(drop))
            .and_then(|()| compiler::read_limit().map(drop))
            .and_then(|()| module::read_cache_settings().map(drop))
            .and_then(|()| check::settings::read().map(drop))
            .err()?;
        // The reader of the standard error may be gone.
        let _ = writeln!(io::stderr(), "zeusm CPU runtime: {found}");
        Some(found.to_string())
    });
    match error {
        None => Ok(()),
        Some(text) => Err(described(sys::ZE_RESULT_ERROR_UNINITIALIZED, text)),
    }
}

fn begin() -> ZeResult {
    check_variables()?;
    platform::begin();
    engine::begin();
    opencl::name_instruction_set();
    environment::set_default(IMMEDIATE_LISTS, c"1");
    environment::set_default(UNLOCKED_WAITS, c"0");
    check::begin();
    driver::begin();
    Ok(())
}

/// `zeInit`. A first one that asks for other kinds of drivers only finds none; a later one succeeds, as in the loader.
pub fn init(wanted: sys::ze_init_flags_t) -> ZeResult {
    let (gpu, vpu) = (sys::ZE_INIT_FLAG_GPU_ONLY.0, sys::ZE_INIT_FLAG_VPU_ONLY.0);
    check_flags(wanted, gpu | vpu)?;
    match wanted == vpu {
        true => driver::expect_initialised(),
        false => begin(),
    }
}

/// `zeInitDrivers`.
pub fn init_drivers(
    drivers: Room<'_, sys::ze_driver_handle_t>,
    desc: In<'_, extensions::ze_init_driver_type_desc_t>,
) -> ZeResult {
    let wanted = desc.flags;
    ensure(wanted != 0, sys::ZE_RESULT_ERROR_INVALID_ENUMERATION)?;
    let ours = if wanted & extensions::ZE_INIT_DRIVER_TYPE_FLAG_GPU != 0 {
        begin()?;
        &[driver::handle()][..]
    } else {
        &[]
    };
    drivers.fill(ours)
}
