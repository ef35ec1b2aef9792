//! `zeMemFree` and `zeMemFreeExt`.

use std::sync::Arc;

use level_zero_sys as sys;

use crate::abi::arguments::check_flags;
use crate::abi::entry::{Address, In};
use crate::abi::result::ZeResult;
use crate::abi::strictness::is_strict;
use crate::check;
use crate::context::Context;
use crate::memory::{self, Allocation};

const BLOCKING: u32 = sys::ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE.0;
const DEFERRED: u32 = sys::ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE.0;

/// `zeMemFree`. The pointer is invalid at once; memory that commands in flight use is freed when they are complete.
pub fn free(context: Arc<Context>, pointer: Address) -> ZeResult {
    take(&context, pointer, 0).map(drop)
}

/// `zeMemFreeExt`: blocking waits until no command in flight uses the memory, nor may use it through pointers in memory;
/// deferred is what [`free`] does.
pub fn free_with_policy(
    context: Arc<Context>,
    desc: In<'_, sys::ze_memory_free_ext_desc_t>,
    pointer: Address,
) -> ZeResult {
    let policy = desc.freePolicy;
    check_flags(policy, BLOCKING | DEFERRED)?;
    let allocation = take(&context, pointer, policy)?;
    if policy & BLOCKING != 0 {
        allocation.wait_until_unused();
    }
    Ok(())
}

/// Ends the life of an allocation, with this policy. Intel's driver looks pointers up for the whole driver, so any of its
/// contexts will do, unless arguments are checked strictly.
fn take(context: &Context, Address(pointer): Address, policy: u32) -> ZeResult<Arc<Allocation>> {
    let is_own = |allocation: &Allocation| allocation.request.context == context.id;
    let removed = memory::remove(pointer, |allocation| {
        (is_own(allocation) || !is_strict()) && !allocation.is_import()
    });
    if check::is_on() && !removed.as_deref().is_some_and(is_own) {
        check::invalid_free(pointer);
    }
    if let Some(watch) = removed.as_ref().and_then(|allocation| allocation.watched()) {
        check::freeing(watch, policy != 0);
    }
    removed.ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}
