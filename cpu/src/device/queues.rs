//! Command queue groups: one for everything, and one that only copies.

use level_zero_sys as sys;

use super::list::Device;
use crate::abi::arguments::check_flags;
use crate::abi::entry::Room;
use crate::abi::result::{ZeResult, ensure};

/// The longest fill pattern in bytes.
pub const MAX_FILL_PATTERN: usize = 4096;
/// `ze_command_queue_flags_t` up to 1.17.
const QUEUE_FLAGS: u32 = 0x7;

/// A command queue group. Both have the same workers; programs use the second one as they would a GPU's copy engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueGroup {
    /// Kernels, copies and fills.
    Compute,
    /// Copies and fills.
    Copy,
}

impl QueueGroup {
    /// All groups, in the order of their ordinals.
    const ALL: [Self; 2] = [Self::Compute, Self::Copy];

    /// The group with this ordinal.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` if there is none.
    pub fn of(ordinal: u32) -> ZeResult<Self> {
        let group = Self::ALL.get(ordinal as usize);
        group.copied().ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
    }

    /// Its ordinal.
    pub fn ordinal(self) -> u32 {
        self as u32
    }

    /// How many queues it has: independent lists and queues share the workers, whatever their index.
    fn queues(self) -> u32 {
        match self {
            Self::Compute => 8,
            Self::Copy => 1,
        }
    }

    /// `ze_command_queue_group_property_flags_t`.
    fn flags(self) -> u32 {
        let copy = sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY.0;
        match self {
            Self::Compute => {
                sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE.0
                    | copy
                    | sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS.0
            }
            Self::Copy => copy,
        }
    }
}

/// `zeDeviceGetCommandQueueGroupProperties`. What copies reach depends on the machine, so that their bandwidth is unknown.
pub fn queue_groups(
    _: &'static Device,
    properties: Room<'_, sys::ze_command_queue_group_properties_t>,
) -> ZeResult {
    let places = properties.structures(QueueGroup::ALL.len())?;
    for (mut properties, group) in places.zip(QueueGroup::ALL) {
        properties.flags = group.flags();
        properties.maxMemoryFillPatternSize = MAX_FILL_PATTERN;
        properties.numQueues = group.queues();
        if let Some(bandwidth) = properties.extension::<sys::ze_copy_bandwidth_exp_properties_t>() {
            bandwidth.copyBandwidth = 0;
            bandwidth.copyBandwidthUnit = sys::ZE_BANDWIDTH_UNIT_UNKNOWN;
        }
    }
    Ok(())
}

/// Checks the descriptor of a queue or an immediate list, and returns its group.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for an ordinal or index that the device does not have,
/// `ZE_RESULT_ERROR_INVALID_ENUMERATION` for an unknown flag, mode or priority.
pub fn check_queue(desc: &sys::ze_command_queue_desc_t) -> ZeResult<QueueGroup> {
    check_flags(desc.flags, QUEUE_FLAGS)?;
    ensure(
        desc.mode.0 <= sys::ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS.0
            && desc.priority.0 <= sys::ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH.0,
        sys::ZE_RESULT_ERROR_INVALID_ENUMERATION,
    )?;
    let group = QueueGroup::of(desc.ordinal)?;
    ensure(
        desc.index < group.queues(),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
    )?;
    Ok(group)
}
