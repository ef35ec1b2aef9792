//! The device's memory and caches, which are the machine's.

use level_zero_sys as sys;

use super::expect;
use crate::abi::arguments::{output, properties, structures, text};
use crate::abi::result::Answer;
use crate::system;

structures! {
    sys::ze_device_memory_properties_t = sys::ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES;
    sys::ze_device_memory_access_properties_t =
        sys::ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES;
    sys::ze_device_cache_properties_t = sys::ZE_STRUCTURE_TYPE_DEVICE_CACHE_PROPERTIES;
    sys::ze_device_external_memory_properties_t =
        sys::ZE_STRUCTURE_TYPE_DEVICE_EXTERNAL_MEMORY_PROPERTIES;
}

/// `zeDeviceGetMemoryProperties`: one memory. The system tells neither its clock nor its bus, so they are 0.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, and `told` null or with room for `*count` entries.
pub unsafe fn memory(
    device: sys::ze_device_handle_t,
    count: *mut u32,
    told: *mut sys::ze_device_memory_properties_t,
) -> Answer {
    expect(device)?;
    // SAFETY: the caller vouches for the pointers.
    let Some(told) = unsafe { one(count, told) }? else {
        return Ok(());
    };
    // SAFETY: likewise.
    let told = unsafe { properties(told) }?;
    told.flags = 0;
    told.maxClockRate = 0;
    told.maxBusWidth = 0;
    told.totalSize = system::memory::total();
    told.name = text("system memory");
    Ok(())
}

/// `zeDeviceGetMemoryAccessProperties`: the processor may do anything with any memory, plain host memory included.
///
/// # Safety
/// As for [`memory`].
pub unsafe fn memory_access(
    device: sys::ze_device_handle_t,
    told: *mut sys::ze_device_memory_access_properties_t,
) -> Answer {
    expect(device)?;
    // SAFETY: the caller vouches for the pointer.
    let told = unsafe { properties(told) }?;
    let everything = sys::ZE_MEMORY_ACCESS_CAP_FLAG_RW.0
        | sys::ZE_MEMORY_ACCESS_CAP_FLAG_ATOMIC.0
        | sys::ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT.0
        | sys::ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT_ATOMIC.0;
    told.hostAllocCapabilities = everything;
    told.deviceAllocCapabilities = everything;
    told.sharedSingleDeviceAllocCapabilities = everything;
    told.sharedCrossDeviceAllocCapabilities = everything;
    told.sharedSystemAllocCapabilities = everything;
    Ok(())
}

/// `zeDeviceGetCacheProperties`: the largest cache.
///
/// # Safety
/// As for [`memory`].
pub unsafe fn cache(
    device: sys::ze_device_handle_t,
    count: *mut u32,
    told: *mut sys::ze_device_cache_properties_t,
) -> Answer {
    expect(device)?;
    // SAFETY: the caller vouches for the pointers.
    let Some(told) = unsafe { one(count, told) }? else {
        return Ok(());
    };
    // SAFETY: likewise.
    let told = unsafe { properties(told) }?;
    told.flags = 0;
    told.cacheSize = system::processor::cache();
    Ok(())
}

/// `zeDeviceGetExternalMemoryProperties`: nothing is imported or exported.
///
/// # Safety
/// As for [`memory`].
pub unsafe fn external_memory(
    device: sys::ze_device_handle_t,
    told: *mut sys::ze_device_external_memory_properties_t,
) -> Answer {
    expect(device)?;
    // SAFETY: the caller vouches for the pointer.
    let told = unsafe { properties(told) }?;
    told.memoryAllocationImportTypes = 0;
    told.memoryAllocationExportTypes = 0;
    told.imageImportTypes = 0;
    told.imageExportTypes = 0;
    Ok(())
}

/// The count-then-fill protocol for a single structure: the place to fill, if one is given.
///
/// # Safety
/// `count` must be null, misaligned or valid.
pub(super) unsafe fn one<T>(count: *mut u32, place: *mut T) -> Answer<Option<*mut T>> {
    // SAFETY: the caller vouches for the pointer.
    let count = unsafe { output(count) }?;
    let room = *count;
    *count = 1;
    Ok((room > 0 && !place.is_null()).then_some(place))
}
