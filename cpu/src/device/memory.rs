//! The device's memory, which is its share of the machine's, and caches.

use level_zero_sys as sys;
use level_zero_sys::extensions::{self, ze_device_cache_line_size_ext_t as CacheLine};

use super::list::{Device, is_discrete};
use crate::abi::arguments::{check_flags, text};
use crate::abi::entry::{Out, Room};
use crate::abi::result::{ZeResult, ensure};
use crate::memory::{self, Share, accounting, exports};
use crate::system;

/// The width in bits of a memory channel, the least that the bus has.
const CHANNEL: u32 = 64;

impl Device {
    /// How much of its memory can be allocated now.
    pub fn free_memory(&self) -> u64 {
        let share = self.share.map_or(self.memory, Share::free);
        accounting::free().min(share).min(self.memory)
    }
}

/// `zeDeviceGetMemoryProperties`: one memory. The system reports neither its clock, which is 0, nor how many channels the bus
/// has.
pub fn memory(
    device: &'static Device,
    properties: Room<'_, sys::ze_device_memory_properties_t>,
) -> ZeResult {
    for mut properties in properties.structures(1)? {
        properties.flags = 0;
        properties.maxClockRate = 0;
        properties.maxBusWidth = CHANNEL;
        properties.totalSize = device.memory;
        properties.name = text("system memory");
    }
    Ok(())
}

/// `zeDeviceGetMemoryAccessProperties`: all capabilities for all memory, system memory included; of a device that is
/// reported as discrete (`ZEUSM_CPU_DISCRETE`), shared memory has no concurrent access, and without peer access that of
/// other devices has none at all.
pub fn memory_access(
    device: &'static Device,
    mut properties: Out<'_, sys::ze_device_memory_access_properties_t>,
) -> ZeResult {
    let alternating = sys::ZE_MEMORY_ACCESS_CAP_FLAG_RW.0 | sys::ZE_MEMORY_ACCESS_CAP_FLAG_ATOMIC.0;
    let everything = alternating
        | sys::ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT.0
        | sys::ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT_ATOMIC.0;
    let shared = if is_discrete() {
        alternating
    } else {
        everything
    };
    properties.hostAllocCapabilities = everything;
    properties.deviceAllocCapabilities = everything;
    properties.sharedSingleDeviceAllocCapabilities = shared;
    properties.sharedCrossDeviceAllocCapabilities = if device.peer_access { shared } else { 0 };
    properties.sharedSystemAllocCapabilities = everything;
    Ok(())
}

/// `zeDeviceGetCacheProperties`: the largest cache.
pub fn cache(
    _: &'static Device,
    properties: Room<'_, sys::ze_device_cache_properties_t>,
) -> ZeResult {
    for mut properties in properties.structures(1)? {
        properties.flags = 0;
        properties.cacheSize = system::processor::cache();
        if let Some(line) = properties.extension::<CacheLine>() {
            line.cacheLineSize = system::processor::cache_line();
        }
    }
    Ok(())
}

/// `Ok` if `flags` are none or types that the runtime has, else `ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION`.
pub fn check_external(flags: u32) -> ZeResult {
    ensure(
        flags & !exports::TYPES == 0,
        sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION,
    )
}

/// `Ok` if IPC handles are to be of a type that the runtime has: for this machine.
///
/// # Errors
/// `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE` for handles that other machines can use.
pub fn check_handle_type(wanted: &extensions::ze_ipc_mem_handle_type_ext_desc_t) -> ZeResult {
    let fabric = extensions::ZE_IPC_MEM_HANDLE_TYPE_FLAG_FABRIC_ACCESSIBLE;
    let known = extensions::ZE_IPC_MEM_HANDLE_TYPE_FLAG_DEFAULT | fabric;
    check_flags(wanted.typeFlags, known)?;
    ensure(
        wanted.typeFlags & fabric == 0,
        sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
    )
}

/// `zeDeviceGetExternalMemoryProperties`: memory files, where the system allows them; images are neither imported nor
/// exported.
pub fn external_memory(
    _: &'static Device,
    mut properties: Out<'_, sys::ze_device_external_memory_properties_t>,
) -> ZeResult {
    let types = if memory::can_be_exported() {
        exports::TYPES
    } else {
        0
    };
    properties.memoryAllocationImportTypes = types;
    properties.memoryAllocationExportTypes = types;
    properties.imageImportTypes = 0;
    properties.imageExportTypes = 0;
    Ok(())
}
