//! The driver: there is one, with one device.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use level_zero_sys as sys;

use crate::answer::{Answer, ensure};
use crate::arguments::{descriptor, fill, flags, output, properties, structures};
use crate::ddi;
use crate::device::extensions;
use crate::fork;
use crate::handle::{Kind, expect_singleton, singleton};
use crate::machine::processor;
use crate::newer;
use crate::usm;

structures! {
    sys::ze_driver_properties_t = sys::ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES;
    sys::ze_driver_ipc_properties_t = sys::ZE_STRUCTURE_TYPE_DRIVER_IPC_PROPERTIES;
}

/// The specification whose core this driver speaks: 1.13.
pub const API_VERSION: u32 = 1 << 16 | 13;

static INITIALISED: AtomicBool = AtomicBool::new(false);

/// The driver's handle.
pub fn handle() -> sys::ze_driver_handle_t {
    singleton(Kind::Driver) as sys::ze_driver_handle_t
}

/// `Ok` when `driver` is the driver and it has been initialised.
pub fn expect(driver: sys::ze_driver_handle_t) -> Answer {
    expect_initialised()?;
    expect_singleton(Kind::Driver, driver)
}

/// `Ok` when the driver has been initialised.
pub fn expect_initialised() -> Answer {
    ensure(
        INITIALISED.load(Ordering::Acquire),
        sys::ZE_RESULT_ERROR_UNINITIALIZED,
    )
}

fn begin() {
    fork::prepare();
    INITIALISED.store(true, Ordering::Release);
}

/// `zeInit`; asking for other kinds of drivers only leaves none.
pub fn init(wanted: sys::ze_init_flags_t) -> Answer {
    let (gpu, vpu) = (sys::ZE_INIT_FLAG_GPU_ONLY.0, sys::ZE_INIT_FLAG_VPU_ONLY.0);
    flags(wanted, gpu | vpu)?;
    ensure(wanted != vpu, sys::ZE_RESULT_ERROR_UNINITIALIZED)?;
    begin();
    Ok(())
}

/// `zeInitDrivers`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn init_drivers(
    count: *mut u32,
    drivers: *mut sys::ze_driver_handle_t,
    desc: *mut newer::ze_init_driver_type_desc_t,
) -> Answer {
    // SAFETY: the caller vouches for the pointers.
    let wanted = unsafe {
        output(count)?;
        descriptor(desc.cast_const())?.flags
    };
    ensure(wanted != 0, sys::ZE_RESULT_ERROR_INVALID_ENUMERATION)?;
    let ours = if wanted & newer::ZE_INIT_DRIVER_TYPE_FLAG_GPU != 0 {
        begin();
        &[handle()][..]
    } else {
        &[]
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { fill(count, drivers, ours) }
}

/// `zeDriverGet`.
///
/// # Safety
/// As for [`init_drivers`].
pub unsafe fn get(count: *mut u32, drivers: *mut sys::ze_driver_handle_t) -> Answer {
    expect_initialised()?;
    // SAFETY: the caller vouches for the pointers.
    unsafe { fill(count, drivers, &[handle()]) }
}

/// `zeDriverGetApiVersion`.
///
/// # Safety
/// As for [`init_drivers`].
pub unsafe fn api_version(
    driver: sys::ze_driver_handle_t,
    version: *mut sys::ze_api_version_t,
) -> Answer {
    expect(driver)?;
    // SAFETY: the caller vouches for the pointer.
    *unsafe { output(version) }? = sys::ze_api_version_t(API_VERSION);
    Ok(())
}

/// `zeDriverGetProperties`: the version is the crate's, as major, minor and build in 8, 8 and 16 bits.
///
/// # Safety
/// As for [`init_drivers`].
pub unsafe fn driver_properties(
    driver: sys::ze_driver_handle_t,
    told: *mut sys::ze_driver_properties_t,
) -> Answer {
    expect(driver)?;
    // SAFETY: the caller vouches for the pointer.
    let told = unsafe { properties(told) }?;
    told.uuid.id = processor::identity();
    told.driverVersion = version();
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

/// `zeDriverGetIpcProperties`: memory can be passed between processes where the system has memory files; event pools
/// cannot.
///
/// # Safety
/// As for [`init_drivers`].
pub unsafe fn ipc_properties(
    driver: sys::ze_driver_handle_t,
    told: *mut sys::ze_driver_ipc_properties_t,
) -> Answer {
    expect(driver)?;
    // SAFETY: the caller vouches for the pointer.
    let told = unsafe { properties(told) }?;
    told.flags = if usm::ipc::is_supported() {
        sys::ZE_IPC_PROPERTY_FLAG_MEMORY.0
    } else {
        0
    };
    Ok(())
}

/// `zeDriverGetExtensionProperties`.
///
/// # Safety
/// As for [`init_drivers`].
pub unsafe fn extension_properties(
    driver: sys::ze_driver_handle_t,
    count: *mut u32,
    told: *mut sys::ze_driver_extension_properties_t,
) -> Answer {
    expect(driver)?;
    // SAFETY: the caller vouches for the pointers.
    unsafe { fill(count, told, &extensions::all()) }
}

/// `zeDriverGetExtensionFunctionAddress`: any function that the runtime implements.
///
/// # Safety
/// As for [`init_drivers`]; `name` must be null or end in a zero byte.
pub unsafe fn extension_function(
    driver: sys::ze_driver_handle_t,
    name: *const c_char,
    address: *mut *mut c_void,
) -> Answer {
    expect(driver)?;
    ensure(!name.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    // SAFETY: the caller vouches for the pointers.
    let (name, address) = unsafe { (CStr::from_ptr(name), output(address)?) };
    let found = name.to_str().ok().and_then(ddi::address);
    *address = found.unwrap_or(std::ptr::null()).cast_mut();
    ensure(found.is_some(), sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)
}

thread_local! {
    /// What the last failed call of the thread has to say; see [`describe`].
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps a description of the error that the current call is about to return.
pub fn describe(text: &str) {
    let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    LAST.set(CString::new(bytes).unwrap_or_default());
}

/// `zeDriverGetLastErrorDescription`: of the calling thread; valid until its next failing call.
///
/// # Safety
/// As for [`init_drivers`].
pub unsafe fn last_error(driver: sys::ze_driver_handle_t, text: *mut *const c_char) -> Answer {
    expect(driver)?;
    // SAFETY: the caller vouches for the pointer.
    *unsafe { output(text) }? = LAST.with_borrow(|text| text.as_ptr());
    Ok(())
}
