//! What specifications newer than 1.4 added and this runtime speaks, declared by hand so that the crate builds
//! with the headers of Debian 12 (specification 1.4) as well as with the newest ones.
//!
//! Source: `ze_api.h` of specification 1.17; layouts and numbers are part of the ABI and never change.
#![allow(non_camel_case_types, missing_docs)]

use std::ffi::c_void;

use level_zero_sys as sys;

use crate::abi::arguments::structures;

/// "Address not found within specified or current context" (1.9).
pub const ZE_RESULT_ERROR_ADDRESS_NOT_FOUND: sys::ze_result_t = sys::ze_result_t(0x7800_0021);

/// Commands of the list run in the order in which they were appended (1.8).
pub const ZE_COMMAND_LIST_FLAG_IN_ORDER: u32 = 1 << 3;
/// Every flag of `ze_command_list_flags_t` up to 1.17.
pub const COMMAND_LIST_FLAGS: u32 = 0x3f;
/// Commands of the implicit queue run in the order in which they were appended (1.8).
pub const ZE_COMMAND_QUEUE_FLAG_IN_ORDER: u32 = 1 << 1;
/// Every flag of `ze_command_queue_flags_t` up to 1.17.
pub const COMMAND_QUEUE_FLAGS: u32 = 0x7;
/// Every flag of `ze_event_pool_flags_t` up to 1.17.
pub const EVENT_POOL_FLAGS: u32 = 0xf;
/// Every flag of `ze_host_mem_alloc_flags_t` up to 1.17.
pub const HOST_MEM_ALLOC_FLAGS: u32 = 0x1f;
/// Every flag of `ze_device_mem_alloc_flags_t` up to 1.17.
pub const DEVICE_MEM_ALLOC_FLAGS: u32 = 0x7;
/// Timestamps that the host may read where the device writes them (1.8).
pub const ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP: u32 = 1 << 3;
/// Every flag of `ze_event_pool_counter_based_exp_flags_t`.
pub const EVENT_POOL_COUNTER_BASED_FLAGS: u32 = 0x3;
/// Every flag of `ze_event_counter_based_flags_t` up to 1.17.
pub const EVENT_COUNTER_BASED_FLAGS: u32 = 0x7f;
/// A counter-based event that can be sent to another process (1.15).
pub const ZE_EVENT_COUNTER_BASED_FLAG_IPC: u32 = 1 << 3;
/// The flags of a counter-based event with timestamps, of the device or of the host's clock (1.15).
pub const EVENT_COUNTER_BASED_TIMED: u32 = 1 << 4 | 1 << 5;
/// `zeInitDrivers` is asked for GPU drivers (1.10).
pub const ZE_INIT_DRIVER_TYPE_FLAG_GPU: u32 = 1 << 0;

/// What `zeInitDrivers` is asked for (1.10).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_init_driver_type_desc_t {
    pub stype: sys::ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: u32,
}

/// A counter-based event without a pool (1.15).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_event_counter_based_desc_t {
    pub stype: sys::ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: u32,
    pub signal: u32,
    pub wait: u32,
}

/// Chained to a pool's descriptor, makes its events counter-based (1.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_event_pool_counter_based_exp_desc_t {
    pub stype: sys::ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: u32,
}

/// Where `zeEventQueryKernelTimestampsExt` writes (1.6).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_event_query_kernel_timestamps_results_ext_properties_t {
    pub stype: sys::ze_structure_type_t,
    pub pNext: *mut c_void,
    pub pKernelTimestampsBuffer: *mut sys::ze_kernel_timestamp_result_t,
    pub pSynchronizedTimestampsBuffer: *mut ze_synchronized_timestamp_result_ext_t,
}

/// A kernel's start and end on the host's clock (1.6).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ze_synchronized_timestamp_data_ext_t {
    pub kernelStart: u64,
    pub kernelEnd: u64,
}

/// Both views of a kernel's time on the host's clock (1.6).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ze_synchronized_timestamp_result_ext_t {
    pub global: ze_synchronized_timestamp_data_ext_t,
    pub context: ze_synchronized_timestamp_data_ext_t,
}

/// The SIMD widths of `zeDeviceGetVectorWidthPropertiesExt` (1.13), in elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_device_vector_width_properties_ext_t {
    pub stype: sys::ze_structure_type_t,
    pub pNext: *mut c_void,
    pub vector_width_size: u32,
    pub preferred_vector_width_char: u32,
    pub preferred_vector_width_short: u32,
    pub preferred_vector_width_int: u32,
    pub preferred_vector_width_long: u32,
    pub preferred_vector_width_float: u32,
    pub preferred_vector_width_double: u32,
    pub preferred_vector_width_half: u32,
    pub native_vector_width_char: u32,
    pub native_vector_width_short: u32,
    pub native_vector_width_int: u32,
    pub native_vector_width_long: u32,
    pub native_vector_width_float: u32,
    pub native_vector_width_double: u32,
    pub native_vector_width_half: u32,
}

/// The number of execution units (extension `ZE_extension_eu_count`), chained to the device's properties.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_eu_count_ext_t {
    pub stype: sys::ze_structure_type_t,
    pub pNext: *const c_void,
    pub numTotalEUs: u32,
}

/// The largest group that a kernel allows (extension `ZE_extension_kernel_max_group_size_properties`), chained to its
/// properties.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_kernel_max_group_size_properties_ext_t {
    pub stype: sys::ze_structure_type_t,
    pub pNext: *mut c_void,
    pub maxGroupSize: u32,
}

structures! {
    ze_event_counter_based_desc_t = sys_type::EVENT_COUNTER_BASED_DESC;
    ze_init_driver_type_desc_t = sys_type::INIT_DRIVER_TYPE_DESC;
    ze_event_query_kernel_timestamps_results_ext_properties_t =
        sys_type::EVENT_QUERY_KERNEL_TIMESTAMPS_RESULTS_EXT_PROPERTIES;
    ze_device_vector_width_properties_ext_t = sys_type::DEVICE_VECTOR_WIDTH_PROPERTIES_EXT;
}

/// Values of `ze_structure_type_t`.
pub mod sys_type {
    use level_zero_sys::ze_structure_type_t;

    pub const KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES: ze_structure_type_t =
        ze_structure_type_t(0x10013);
    pub const LAUNCH_COOPERATIVE_DESC: ze_structure_type_t = ze_structure_type_t(0x20036);
    pub const EU_COUNT_EXT: ze_structure_type_t = ze_structure_type_t(0x10005);
    pub const EVENT_QUERY_KERNEL_TIMESTAMPS_RESULTS_EXT_PROPERTIES: ze_structure_type_t =
        ze_structure_type_t(0x10012);
    pub const COUNTER_BASED_EVENT_POOL_EXP_DESC: ze_structure_type_t = ze_structure_type_t(0x20014);
    pub const EVENT_COUNTER_BASED_DESC: ze_structure_type_t = ze_structure_type_t(0x2003a);
    pub const INIT_DRIVER_TYPE_DESC: ze_structure_type_t = ze_structure_type_t(0x20021);
    pub const DEVICE_VECTOR_WIDTH_PROPERTIES_EXT: ze_structure_type_t =
        ze_structure_type_t(0x20029);
}
