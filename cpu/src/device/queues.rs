//! Command queue groups: one, for everything.

use level_zero_sys as sys;

use super::find;
use super::memory::one;
use crate::abi::arguments::{check_flags, output_structure, structures};
use crate::abi::result::{ZeResult, ensure};

structures! {
    sys::ze_command_queue_group_properties_t =
        sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES;
}

/// The longest fill pattern in bytes.
pub const MAX_FILL_PATTERN: usize = 4096;
/// `ze_command_queue_flags_t` up to 1.17.
const QUEUE_FLAGS: u32 = 0x7;
/// How many queues the group has: independent lists and queues share the workers, whatever their index.
const QUEUES: u32 = 8;

/// `zeDeviceGetCommandQueueGroupProperties`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, and `properties` null or with room for `*count` entries.
pub unsafe fn queue_groups(
    device: sys::ze_device_handle_t,
    count: *mut u32,
    properties: *mut sys::ze_command_queue_group_properties_t,
) -> ZeResult {
    find(device)?;
    // SAFETY: the caller vouches for the pointers.
    let Some(properties) = unsafe { one(count, properties) }? else {
        return Ok(());
    };
    // SAFETY: likewise.
    let properties = unsafe { output_structure(properties) }?;
    properties.flags = sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE.0
        | sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY.0
        | sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS.0;
    properties.maxMemoryFillPatternSize = MAX_FILL_PATTERN;
    properties.numQueues = QUEUES;
    Ok(())
}

/// Checks the descriptor of a queue or an immediate list.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for an ordinal or index that the device does not have,
/// `ZE_RESULT_ERROR_INVALID_ENUMERATION` for an unknown flag, mode or priority.
pub fn check_queue(desc: &sys::ze_command_queue_desc_t) -> ZeResult {
    check_flags(desc.flags, QUEUE_FLAGS)?;
    ensure(
        desc.mode.0 <= sys::ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS.0
            && desc.priority.0 <= sys::ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH.0,
        sys::ZE_RESULT_ERROR_INVALID_ENUMERATION,
    )?;
    check_ordinal(desc.ordinal)?;
    ensure(desc.index < QUEUES, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

/// Checks the ordinal of a queue group.
pub fn check_ordinal(ordinal: u32) -> ZeResult {
    ensure(ordinal == 0, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}
