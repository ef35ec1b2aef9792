//! System management: how much of a device's memory is free. The rest of that API is not
//! implemented.
//!
//! A device has one memory module, the machine's memory, whose handle is the device's own.

use level_zero_sys as sys;
use level_zero_sys::extensions;

use crate::abi::arguments::text;
use crate::abi::entry::{Out, Room};
use crate::abi::result::{ZeResult, ensure};
use crate::driver::Driver;
use crate::system::memory::tells_memory;
use crate::{device, init};

/// What is not known of the memory bus.
const UNKNOWN: i32 = -1;

/// `zesInit`, which needs no `zeInit` before.
pub fn init(flags: u32) -> ZeResult {
    ensure(flags == 0, sys::ZE_RESULT_ERROR_INVALID_ENUMERATION)?;
    init::init(0)
}

/// `zesDeviceGetProperties`: those of the device itself. Serial number, board and driver version are not known.
pub fn device_properties(
    device: sys::zes_device_handle_t,
    mut properties: Out<'_, sys::zes_device_properties_t>,
) -> ZeResult {
    let device = device::find(device.cast())?;
    // The inner structure is only written: a caller may leave it without a type and a chain.
    properties.core.stype = sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
    properties.core.pNext = std::ptr::null_mut();
    device.describe(&mut properties.core);
    properties.numSubdevices = device.sub_devices().len() as u32;
    // The specification's spelling of what cannot be determined.
    let unknown = text("unkown");
    properties.serialNumber = unknown;
    properties.boardNumber = unknown;
    properties.brandName = unknown;
    properties.driverVersion = unknown;
    properties.vendorName = unknown;
    properties.modelName = text("zeusm CPU runtime");
    let core = properties.core;
    if let Some(extended) = properties.extension::<extensions::zes_device_ext_properties_t>() {
        extended.uuid.id = core.uuid.id;
        extended.type_ = core.type_.0;
        extended.flags = core.flags;
    }
    Ok(())
}

/// `zesDriverGetDeviceByUuidExp`: the device with this UUID; of a sub-device, the device that it is a part of, and its number there.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a UUID of no device.
pub fn device_by_uuid(
    _: Driver,
    uuid: extensions::zes_uuid_t,
    device: &mut sys::zes_device_handle_t,
    on_sub_device: &mut sys::ze_bool_t,
    sub_device: &mut u32,
) -> ZeResult {
    let found = device::with_uuid(uuid.id).ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    *device = found.root().unwrap_or(found).handle().cast();
    *on_sub_device = found.root().is_some().into();
    *sub_device = found.sub_device_id;
    Ok(())
}

/// `zesDeviceEnumMemoryModules`: one.
pub fn memory_modules(
    device: sys::zes_device_handle_t,
    modules: Room<'_, sys::zes_mem_handle_t>,
) -> ZeResult {
    device::find(device.cast())?;
    modules.fill(&[device.cast()])
}

/// `zesMemoryGetProperties`: system memory, of an unknown bus.
pub fn memory_properties(
    module: sys::zes_mem_handle_t,
    mut properties: Out<'_, sys::zes_mem_properties_t>,
) -> ZeResult {
    let device = device::find(module.cast())?;
    properties.type_ = sys::ZES_MEM_TYPE_DDR;
    properties.onSubdevice = 0;
    properties.subdeviceId = 0;
    properties.location = sys::ZES_MEM_LOC_SYSTEM;
    properties.physicalSize = device.memory;
    properties.busWidth = UNKNOWN;
    properties.numChannels = UNKNOWN;
    Ok(())
}

/// `zesMemoryGetState`: what can be allocated now, which is what the machine has available, or the control group if that has
/// less, swapping included, and what this process has left of the device's share.
pub fn memory_state(
    module: sys::zes_mem_handle_t,
    mut state: Out<'_, sys::zes_mem_state_t>,
) -> ZeResult {
    let device = device::find(module.cast())?;
    // The process or the machine has too many files open.
    ensure(tells_memory(), sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    state.health = sys::ZES_MEM_HEALTH_UNKNOWN;
    state.size = device.memory;
    state.free = device.free_memory();
    Ok(())
}
