//! `zeMemFree` and `zeMemFreeExt`.

use std::ffi::c_void;
use std::sync::Arc;

use level_zero_sys as sys;

use crate::abi::arguments::{check_flags, input_structure};
use crate::abi::result::{ZeResult, ensure};
use crate::abi::strictness::is_strict;
use crate::check;
use crate::context::Context;
use crate::handle::resolve;
use crate::memory::{self, Allocation};

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

/// Ends the life of an allocation, with this policy. Intel's driver looks pointers up for the whole driver, so any of its
/// contexts will do, unless arguments are checked strictly.
fn take(context: &Context, pointer: *mut c_void, policy: u32) -> ZeResult<Arc<Allocation>> {
    ensure(
        !pointer.is_null(),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
    )?;
    let is_own = |allocation: &Allocation| allocation.context() == context.id();
    let removed = memory::remove(pointer as usize, |allocation| {
        (is_own(allocation) || !is_strict()) && !allocation.is_import()
    });
    if check::is_on() && !removed.as_deref().is_some_and(is_own) {
        check::invalid_free(pointer as usize);
    }
    if let Some(watch) = removed.as_ref().and_then(|allocation| allocation.watched()) {
        check::freeing(watch, policy != 0);
    }
    removed.ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}
