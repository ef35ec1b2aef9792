//! System management: how much of a device's memory is free. The rest of that API is not
//! implemented.
//!
//! A device has one memory module, the machine's memory, whose handle is the device's own.

use level_zero_sys as sys;
use level_zero_sys::extensions;

use crate::abi::arguments::{chain, enumerate, output_structure, text};
use crate::abi::result::{ZeResult, ensure};
use crate::memory::{Share, accounting};
use crate::{device, init};

/// What is not known of the memory bus.
const UNKNOWN: i32 = -1;

/// `zesInit`, which needs no `zeInit` before.
pub fn init(flags: u32) -> ZeResult {
    ensure(flags == 0, sys::ZE_RESULT_ERROR_INVALID_ENUMERATION)?;
    init::init(0)
}

/// `zesDeviceGetProperties`: those of the device itself. Serial number, board and driver version are not known.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn device_properties(
    device: sys::zes_device_handle_t,
    properties: *mut sys::zes_device_properties_t,
) -> ZeResult {
    let handle: sys::ze_device_handle_t = device.cast();
    let found = device::find(handle)?;
    // SAFETY: the caller vouches for the pointer.
    let properties = unsafe { output_structure(properties) }?;
    // The inner structure is only written: a caller may leave it without a type and a chain.
    properties.core.stype = sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
    properties.core.pNext = std::ptr::null_mut();
    // SAFETY: it belongs to the structure that the caller vouches for.
    unsafe { device::device_properties(handle, &raw mut properties.core) }?;
    properties.numSubdevices = found.sub_devices().len() as u32;
    // The specification's spelling of what cannot be determined.
    let unknown = text("unkown");
    properties.serialNumber = unknown;
    properties.boardNumber = unknown;
    properties.brandName = unknown;
    properties.driverVersion = unknown;
    properties.vendorName = unknown;
    properties.modelName = text("zeusm CPU runtime");
    // SAFETY: the caller vouches for the chain.
    for link in unsafe { chain(properties.pNext) } {
        if let Some(extended) = link.output::<extensions::zes_device_ext_properties_t>() {
            extended.uuid.id = properties.core.uuid.id;
            extended.type_ = properties.core.type_.0;
            extended.flags = properties.core.flags;
        }
    }
    Ok(())
}

/// `zesDeviceEnumMemoryModules`: one.
///
/// # Safety
/// As for [`device_properties`].
pub unsafe fn memory_modules(
    device: sys::zes_device_handle_t,
    count: *mut u32,
    modules: *mut sys::zes_mem_handle_t,
) -> ZeResult {
    device::find(device.cast())?;
    // SAFETY: the caller vouches for the pointers.
    unsafe { enumerate(count, modules, &[device.cast()]) }
}

/// `zesMemoryGetProperties`: system memory, of an unknown bus.
///
/// # Safety
/// As for [`device_properties`].
pub unsafe fn memory_properties(
    module: sys::zes_mem_handle_t,
    properties: *mut sys::zes_mem_properties_t,
) -> ZeResult {
    let device = device::find(module.cast())?;
    // SAFETY: the caller vouches for the pointer.
    let properties = unsafe { output_structure(properties) }?;
    properties.type_ = sys::ZES_MEM_TYPE_DDR;
    properties.onSubdevice = 0;
    properties.subdeviceId = 0;
    properties.location = sys::ZES_MEM_LOC_SYSTEM;
    properties.physicalSize = device.memory();
    properties.busWidth = UNKNOWN;
    properties.numChannels = UNKNOWN;
    Ok(())
}

/// `zesMemoryGetState`: what can be allocated now, which is what the machine has available, or the control group if that has
/// less, swapping included, and what this process has left of the device's share.
///
/// # Safety
/// As for [`device_properties`].
pub unsafe fn memory_state(
    module: sys::zes_mem_handle_t,
    state: *mut sys::zes_mem_state_t,
) -> ZeResult {
    let device = device::find(module.cast())?;
    // SAFETY: the caller vouches for the pointer.
    let state = unsafe { output_structure(state) }?;
    state.health = sys::ZES_MEM_HEALTH_UNKNOWN;
    state.size = device.memory();
    let share = device.share().map_or(state.size, Share::free);
    state.free = accounting::free().min(share).min(state.size);
    Ok(())
}
