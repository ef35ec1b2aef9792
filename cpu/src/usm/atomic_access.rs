//! `zeMemSetAtomicAccessAttributeExp` and `zeMemGetAtomicAccessAttributeExp`.
//!
//! Atomic operations of host and devices are always possible, so attributes are stored and change nothing.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use level_zero_sys as sys;
use rangemap::RangeMap;
use zeusm_process::{ForkSafe, Lazy, Mutex};

use crate::abi::arguments::check_flags;
use crate::abi::entry::Address;
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device::Device;
use crate::{device, memory};

/// `ze_memory_atomic_attr_exp_flags_t`.
const FLAGS: u32 = 0x7f;
/// `ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_SYSTEM_ATOMICS`.
const SYSTEM_ATOMICS: u32 = 1 << 6;

/// By the handle of a device: attributes, with the id of the allocation or 0 for the system's memory. An allocation that was freed
/// leaves them until another one has its addresses.
type Attributes = HashMap<usize, RangeMap<usize, (u64, u32)>>;

/// The attributes of this process.
fn attributes() -> &'static Mutex<Attributes> {
    static ATTRIBUTES: Lazy<ForkSafe<Mutex<Attributes>>> = Lazy::new();
    ATTRIBUTES.get_or_make(ForkSafe::default).get()
}

/// A range of memory, and the id of its allocation.
///
/// # Errors
/// Those of [`set_atomic_access`] for the range.
fn place(context: &Context, Address(start): Address, size: usize) -> ZeResult<(Range<usize>, u64)> {
    let invalid = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
    let end = start.checked_add(size).ok_or(invalid)?;
    ensure(size > 0, invalid)?;
    let id = match memory::find(start) {
        None => 0,
        Some(allocation) => {
            let is_shared = allocation.request.kind == sys::ZE_MEMORY_TYPE_SHARED;
            let is_inside = end <= allocation.bytes().end;
            let is_own = allocation.request.context == context.id;
            ensure(is_shared && is_inside && is_own, invalid)?;
            allocation.id
        }
    };
    Ok((start..end, id))
}

/// `zeMemSetAtomicAccessAttributeExp`, for exactly the range.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for an empty range, memory of another context, memory that is neither shared nor the
/// system's, a range that leaves its allocation, and concurrent atomics of host and device where the device is reported not to
/// have them (`ZEUSM_CPU_DISCRETE`).
pub fn set_atomic_access(
    context: Arc<Context>,
    device: &'static Device,
    pointer: Address,
    size: usize,
    attribute: u32,
) -> ZeResult {
    let (range, id) = place(&context, pointer, size)?;
    check_flags(attribute, FLAGS)?;
    ensure(
        attribute & SYSTEM_ATOMICS == 0 || device::has_system_atomics(),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
    )?;
    let mut attributes = attributes().lock();
    let ranges = attributes.entry(device.handle() as usize).or_default();
    ranges.insert(range, (id, attribute));
    Ok(())
}

/// `zeMemGetAtomicAccessAttributeExp`: of the range's first byte, 0 if none was set.
///
/// # Errors
/// Those of [`set_atomic_access`] for the range.
pub fn atomic_access(
    context: Arc<Context>,
    device: &'static Device,
    pointer: Address,
    size: usize,
    attribute: &mut u32,
) -> ZeResult {
    let (range, id) = place(&context, pointer, size)?;
    let attributes = attributes().lock();
    let ranges = attributes.get(&(device.handle() as usize));
    let found = ranges.and_then(|ranges| ranges.get(&range.start));
    *attribute = found.map_or(0, |(of, found)| if *of == id { *found } else { 0 });
    Ok(())
}
