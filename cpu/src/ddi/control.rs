//! Initialisation, drivers, devices, contexts, and of system management the memory of a device.

use std::ffi::c_char;

use level_zero_sys::extensions::{
    ze_device_vector_width_properties_ext_t, ze_init_driver_type_desc_t, zes_uuid_t,
};
use level_zero_sys::*;

use crate::ddi::declare::functions;
use crate::{context, device, driver, images, init, sysman};

functions! {
    zeInit => init::init;
    zeInitDrivers => init::init_drivers;

    zeDriverGet => driver::get;
    zeDriverGetApiVersion => driver::api_version;
    zeDriverGetProperties => driver::driver_properties;
    zeDriverGetIpcProperties => driver::ipc_properties;
    zeDriverGetExtensionProperties => driver::extension_properties;
    zeDriverGetLastErrorDescription => driver::last_error;
    zeDriverGetDefaultContext(driver: ze_driver_handle_t) -> ze_context_handle_t => context::default_context;

    zeDeviceGet => device::get;
    zeDeviceGetSubDevices => device::sub_devices;
    zeDeviceGetProperties => device::device_properties;
    zeDeviceGetComputeProperties => device::compute;
    zeDeviceGetModuleProperties => device::module;
    zeDeviceGetCommandQueueGroupProperties => device::queue_groups;
    zeDeviceGetMemoryProperties => device::memory;
    zeDeviceGetMemoryAccessProperties => device::memory_access;
    zeDeviceGetCacheProperties => device::cache;
    zeDeviceGetImageProperties => device::image;
    zeDeviceGetExternalMemoryProperties => device::external_memory;
    zeDeviceGetP2PProperties => device::p2p;
    zeDeviceCanAccessPeer => device::can_access_peer;
    zeDeviceGetStatus => device::status;
    zeDeviceGetGlobalTimestamps => device::global_timestamps;
    zeDevicePciGetPropertiesExt => device::pci;
    zeDeviceGetRootDevice => device::root_device;
    zeDeviceGetVectorWidthPropertiesExt => device::vector_width;
    zeDeviceGetFabricVertexExp => device::fabric_vertex;
    zeFabricVertexGetExp => device::fabric_vertices;

    zeContextCreate => context::create;
    zeContextDestroy => context::destroy;
    zeContextGetStatus => context::status;
    zeContextSystemBarrier => context::system_barrier;
    zeContextMakeMemoryResident => context::check_residency;
    zeContextEvictMemory => context::check_residency;
    zeContextMakeImageResident => images::check_residency;
    zeContextEvictImage => images::check_residency;
    zeContextCreateEx => context::create_for;

    zesInit => sysman::init;

    zesDriverGet => driver::get;
    zesDriverGetDeviceByUuidExp(
        driver: ze_driver_handle_t,
        uuid: zes_uuid_t,
        device: *mut zes_device_handle_t,
        on_sub_device: *mut ze_bool_t,
        sub_device: *mut u32,
    ) => sysman::device_by_uuid;

    zesDeviceGetProperties => sysman::device_properties;
    zesDeviceEnumMemoryModules => sysman::memory_modules;
    zesDeviceGet => device::get;

    zesMemoryGetProperties => sysman::memory_properties;
    zesMemoryGetState => sysman::memory_state;
}
