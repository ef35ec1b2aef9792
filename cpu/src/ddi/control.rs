//! Initialisation, drivers, devices and contexts.

use std::ffi::{c_char, c_void};

use level_zero_sys::extensions::{
    ze_device_vector_width_properties_ext_t, ze_init_driver_type_desc_t,
};
use level_zero_sys::*;

use super::ddi;
use crate::{context, device, driver, images, init};

ddi! {
    zeGetGlobalProcAddrTable {
        0 zeInit(flags: ze_init_flags_t) => init::init;
        10 zeInitDrivers(
            count: *mut u32,
            drivers: *mut ze_driver_handle_t,
            desc: *mut ze_init_driver_type_desc_t,
        ) => init::init_drivers;
    }
    zeGetDriverProcAddrTable {
        0 zeDriverGet(count: *mut u32, drivers: *mut ze_driver_handle_t) => driver::get;
        0 zeDriverGetApiVersion(driver: ze_driver_handle_t, version: *mut ze_api_version_t) => driver::api_version;
        0 zeDriverGetProperties(
            driver: ze_driver_handle_t,
            properties: *mut ze_driver_properties_t,
        ) => driver::driver_properties;
        0 zeDriverGetIpcProperties(
            driver: ze_driver_handle_t,
            properties: *mut ze_driver_ipc_properties_t,
        ) => driver::ipc_properties;
        0 zeDriverGetExtensionProperties(
            driver: ze_driver_handle_t,
            count: *mut u32,
            properties: *mut ze_driver_extension_properties_t,
        ) => driver::extension_properties;
        1 zeDriverGetExtensionFunctionAddress(
            driver: ze_driver_handle_t,
            name: *const c_char,
            address: *mut *mut c_void,
        ) => super::extension_function;
        6 zeDriverGetLastErrorDescription(driver: ze_driver_handle_t, text: *mut *const c_char) => driver::last_error;
        13 zeDriverRTASFormatCompatibilityCheckExt;
        14 zeDriverGetDefaultContext(driver: ze_driver_handle_t) -> ze_context_handle_t => context::default_context;
    }
    zeGetDriverExpProcAddrTable {
        7 zeDriverRTASFormatCompatibilityCheckExp;
    }
    zeGetDeviceProcAddrTable {
        0 zeDeviceGet(driver: ze_driver_handle_t, count: *mut u32, devices: *mut ze_device_handle_t) => device::get;
        0 zeDeviceGetSubDevices(
            device: ze_device_handle_t,
            count: *mut u32,
            devices: *mut ze_device_handle_t,
        ) => device::sub_devices;
        0 zeDeviceGetProperties(
            device: ze_device_handle_t,
            properties: *mut ze_device_properties_t,
        ) => device::device_properties;
        0 zeDeviceGetComputeProperties(
            device: ze_device_handle_t,
            properties: *mut ze_device_compute_properties_t,
        ) => device::compute;
        0 zeDeviceGetModuleProperties(
            device: ze_device_handle_t,
            properties: *mut ze_device_module_properties_t,
        ) => device::module;
        0 zeDeviceGetCommandQueueGroupProperties(
            device: ze_device_handle_t,
            count: *mut u32,
            properties: *mut ze_command_queue_group_properties_t,
        ) => device::queue_groups;
        0 zeDeviceGetMemoryProperties(
            device: ze_device_handle_t,
            count: *mut u32,
            properties: *mut ze_device_memory_properties_t,
        ) => device::memory;
        0 zeDeviceGetMemoryAccessProperties(
            device: ze_device_handle_t,
            properties: *mut ze_device_memory_access_properties_t,
        ) => device::memory_access;
        0 zeDeviceGetCacheProperties(
            device: ze_device_handle_t,
            count: *mut u32,
            properties: *mut ze_device_cache_properties_t,
        ) => device::cache;
        0 zeDeviceGetImageProperties(
            device: ze_device_handle_t,
            properties: *mut ze_device_image_properties_t,
        ) => device::image;
        0 zeDeviceGetExternalMemoryProperties(
            device: ze_device_handle_t,
            properties: *mut ze_device_external_memory_properties_t,
        ) => device::external_memory;
        0 zeDeviceGetP2PProperties(
            device: ze_device_handle_t,
            peer: ze_device_handle_t,
            properties: *mut ze_device_p2p_properties_t,
        ) => device::p2p;
        0 zeDeviceCanAccessPeer(
            device: ze_device_handle_t,
            peer: ze_device_handle_t,
            value: *mut ze_bool_t,
        ) => device::can_access_peer;
        0 zeDeviceGetStatus(device: ze_device_handle_t) => device::status;
        1 zeDeviceGetGlobalTimestamps(
            device: ze_device_handle_t,
            host: *mut u64,
            on_device: *mut u64,
        ) => device::global_timestamps;
        2 zeDeviceReserveCacheExt;
        2 zeDeviceSetCacheAdviceExt;
        3 zeDevicePciGetPropertiesExt(
            device: ze_device_handle_t,
            properties: *mut ze_pci_ext_properties_t,
        ) => device::pci;
        7 zeDeviceGetRootDevice(device: ze_device_handle_t, root: *mut ze_device_handle_t) => device::root_device;
        12 zeDeviceImportExternalSemaphoreExt;
        12 zeDeviceReleaseExternalSemaphoreExt;
        13 zeDeviceGetVectorWidthPropertiesExt(
            device: ze_device_handle_t,
            count: *mut u32,
            properties: *mut ze_device_vector_width_properties_ext_t,
        ) => device::vector_width;
        14 zeDeviceSynchronize;
        15 zeDeviceGetAggregatedCopyOffloadIncrementValue;
        16 zeDeviceGetRuntimeRequirements;
        16 zeDeviceGetRuntimeRequirementsKey;
        16 zeDeviceValidateRuntimeRequirements;
        17 zeDeviceGetCounterBasedEventMaxValue;
    }
    zeGetDeviceExpProcAddrTable {
        4 zeDeviceGetFabricVertexExp;
    }
    zeGetContextProcAddrTable {
        0 zeContextCreate(
            driver: ze_driver_handle_t,
            desc: *const ze_context_desc_t,
            context: *mut ze_context_handle_t,
        ) => context::create;
        0 zeContextDestroy(context: ze_context_handle_t) => context::destroy;
        0 zeContextGetStatus(context: ze_context_handle_t) => context::status;
        0 zeContextSystemBarrier(context: ze_context_handle_t, device: ze_device_handle_t) => context::system_barrier;
        0 zeContextMakeMemoryResident(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            pointer: *mut c_void,
            size: usize,
        ) => context::check_residency;
        0 zeContextEvictMemory(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            pointer: *mut c_void,
            size: usize,
        ) => context::check_residency;
        0 zeContextMakeImageResident(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            image: ze_image_handle_t,
        ) => images::check_residency;
        0 zeContextEvictImage(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            image: ze_image_handle_t,
        ) => images::check_residency;
        1 zeContextCreateEx(
            driver: ze_driver_handle_t,
            desc: *const ze_context_desc_t,
            count: u32,
            devices: *mut ze_device_handle_t,
            context: *mut ze_context_handle_t,
        ) => context::create_for;
    }
    zeGetFabricEdgeExpProcAddrTable {
        4 zeFabricEdgeGetExp;
        4 zeFabricEdgeGetVerticesExp;
        4 zeFabricEdgeGetPropertiesExp;
    }
    zeGetFabricVertexExpProcAddrTable {
        4 zeFabricVertexGetExp;
        4 zeFabricVertexGetSubVerticesExp;
        4 zeFabricVertexGetPropertiesExp;
        4 zeFabricVertexGetDeviceExp;
    }
}
