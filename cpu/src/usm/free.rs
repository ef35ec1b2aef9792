//! `zeMemFree` and `zeMemFreeExt`.

use std::ffi::c_void;
use std::sync::Arc;

use level_zero_sys as sys;

use crate::abi::arguments::{check_flags, input_structure, structures};
use crate::abi::result::{ZeResult, ensure};
use crate::check;
use crate::context::Context;
use crate::handle::resolve;
use crate::memory::{self, Allocation};

structures! {
    sys::ze_memory_free_ext_desc_t = sys::ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC;
}

const BLOCKING: u32 = sys::ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE.0;
const DEFERRED: u32 = sys::ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE.0;

/// `zeMemFree`. The pointer is invalid at once; memory that commands in flight use is freed when they are complete.
pub fn free(context: sys::ze_context_handle_t, pointer: *mut c_void) -> ZeResult {
    let context = resolve::<Context>(context)?;
    take(&context, pointer, 0).map(drop)
}

/// `zeMemFreeExt`: blocking waits until no command in flight uses the memory, nor may use it through pointers in memory;
/// deferred is what [`free`] does.
///
/// # Safety
/// `desc` must be null, misaligned or valid.
pub unsafe fn free_with_policy(
    context: sys::ze_context_handle_t,
    desc: *const sys::ze_memory_free_ext_desc_t,
    pointer: *mut c_void,
) -> ZeResult {
    let context = resolve::<Context>(context)?;
    // SAFETY: the caller vouches for the pointer.
    let policy = unsafe { input_structure(desc) }?.freePolicy;
    check_flags(policy, BLOCKING | DEFERRED)?;
    let allocation = take(&context, pointer, policy)?;
    if policy & BLOCKING != 0 {
        allocation.wait_until_unused();
    }
    Ok(())
}

/// Ends the life of an allocation, with this policy.
fn take(context: &Context, pointer: *mut c_void, policy: u32) -> ZeResult<Arc<Allocation>> {
    ensure(
        !pointer.is_null(),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
    )?;
    let removed = memory::remove(pointer as usize, |allocation| {
        allocation.context() == context.id() && !allocation.is_import()
    });
    match removed.as_ref().map(|allocation| allocation.watched()) {
        Some(Some(watch)) => check::freeing(watch, policy != 0),
        None if check::is_on() => check::invalid_free(pointer as usize),
        _ => {}
    }
    removed.ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}
