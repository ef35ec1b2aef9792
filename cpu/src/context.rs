//! Contexts, which own memory, queues, lists and event pools.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use level_zero_sys as sys;
use zeusm_process::Lazy;

use crate::abi::arguments::{check_flags, input_array, input_structure, output};
use crate::abi::result::{ZeResult, ensure};
use crate::device;
use crate::driver;
use crate::handle::{object, register, resolve, retire};
use crate::memory;

object!(Context, sys::_ze_context_handle_t, Context);

/// A context.
#[derive(Debug)]
pub struct Context {
    id: u64,
}

impl Context {
    /// A new context, different from every other one of the process.
    fn make() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The id that its allocations carry.
    pub fn id(&self) -> u64 {
        self.id
    }
}

/// `zeContextCreate`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn create(
    driver: sys::ze_driver_handle_t,
    desc: *const sys::ze_context_desc_t,
    context: *mut sys::ze_context_handle_t,
) -> ZeResult {
    // SAFETY: the caller vouches for the pointers.
    unsafe { create_for(driver, desc, 0, std::ptr::null_mut(), context) }
}

/// `zeContextCreateEx`; no devices means all of them.
///
/// # Safety
/// As for [`create`].
pub unsafe fn create_for(
    driver: sys::ze_driver_handle_t,
    desc: *const sys::ze_context_desc_t,
    device_count: u32,
    devices: *mut sys::ze_device_handle_t,
    context: *mut sys::ze_context_handle_t,
) -> ZeResult {
    driver::expect(driver)?;
    // SAFETY: the caller vouches for the pointers.
    let (desc, devices, context) = unsafe {
        (
            input_structure(desc)?,
            input_array(
                devices.cast_const(),
                device_count,
                sys::ZE_RESULT_ERROR_INVALID_SIZE,
            )?,
            output(context)?,
        )
    };
    check_flags(desc.flags, 0x1)?;
    devices
        .iter()
        .try_for_each(|device| device::find(*device).map(drop))?;
    *context = register(Arc::new(Context::make()))?;
    Ok(())
}

/// `zeContextDestroy`: also frees the context's memory; memory that commands in flight use is freed when they are
/// complete.
pub fn destroy(context: sys::ze_context_handle_t) -> ZeResult {
    drop(memory::remove_context(retire::<Context>(context)?.id()));
    Ok(())
}

/// `zeContextGetStatus`.
pub fn status(context: sys::ze_context_handle_t) -> ZeResult {
    resolve::<Context>(context).map(drop)
}

/// `zeContextSystemBarrier`: a memory fence, as host and device are the same processor.
pub fn system_barrier(
    context: sys::ze_context_handle_t,
    device: sys::ze_device_handle_t,
) -> ZeResult {
    resolve::<Context>(context)?;
    device::find(device)?;
    std::sync::atomic::fence(Ordering::SeqCst);
    Ok(())
}

/// `zeContextMakeMemoryResident` and `zeContextEvictMemory`: all memory is resident, so only the range is checked.
pub fn check_residency(
    context: sys::ze_context_handle_t,
    device: sys::ze_device_handle_t,
    pointer: *mut c_void,
    size: usize,
) -> ZeResult {
    resolve::<Context>(context)?;
    device::find(device)?;
    ensure(
        !pointer.is_null(),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
    )?;
    memory::Span::new(pointer as usize, size).map(drop)
}

/// `zeDriverGetDefaultContext`: one context that lives as long as the process.
///
/// It returns null before the driver is initialised or for a handle that is not the driver's.
pub fn default_context(driver: sys::ze_driver_handle_t) -> sys::ze_context_handle_t {
    static DEFAULT: Lazy<usize> = Lazy::new();
    if driver::expect(driver).is_err() {
        return std::ptr::null_mut();
    }
    let made =
        DEFAULT.get_or_make(|| register(Arc::new(Context::make())).map_or(0, |it| it as usize));
    *made as sys::ze_context_handle_t
}
