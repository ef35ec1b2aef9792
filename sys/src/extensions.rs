//! Extension entry points: the declarations of specifications newer than 1.4 that zeusm uses.
//!
//! The headers of Debian 12 (specification 1.4) do not contain them, so this is the only handwritten part of the bindings.
//! Names, values and layouts follow `ze_api.h` 1.17; they are part of the ABI and never change. The build fails if a
//! declaration differs from that of the installed headers. As in the headers, the comment of a structure's type names the structure.
#![allow(non_camel_case_types, non_snake_case, missing_docs)]

use std::ffi::{c_char, c_void};

use crate::bindings::*;
use crate::functions::symbol;

/// "Kernel handle is invalid for the operation" (1.7).
pub const ZE_RESULT_ERROR_INVALID_KERNEL_HANDLE: ze_result_t = ze_result_t(0x7800_001c);
/// "Device is in survivability mode, firmware update needed" (1.9).
pub const ZE_RESULT_ERROR_SURVIVABILITY_MODE_DETECTED: ze_result_t = ze_result_t(0x7800_0020);
/// "Address not found within specified or current context" (1.9).
pub const ZE_RESULT_ERROR_ADDRESS_NOT_FOUND: ze_result_t = ze_result_t(0x7800_0021);

/// Commands of the list run in the order in which they were appended (1.8).
pub const ZE_COMMAND_LIST_FLAG_IN_ORDER: u32 = 1 << 3;
/// Commands of an immediate list run in the order in which they were appended (1.8).
pub const ZE_COMMAND_QUEUE_FLAG_IN_ORDER: u32 = 1 << 1;
/// Events whose timestamps the device writes to host-readable memory (1.8).
pub const ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP: u32 = 1 << 3;
/// A counter-based event that can be sent to another process (1.15).
pub const ZE_EVENT_COUNTER_BASED_FLAG_IPC: u32 = 1 << 3;
/// A counter-based event with timestamps of the device's clock (1.15).
pub const ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP: u32 = 1 << 4;
/// A counter-based event with timestamps of the host's clock (1.15).
pub const ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP: u32 = 1 << 5;
/// `zeInitDrivers` returns GPU drivers (1.10).
pub const ZE_INIT_DRIVER_TYPE_FLAG_GPU: u32 = 1 << 0;

///< ::ze_event_query_kernel_timestamps_results_ext_properties_t
pub const ZE_STRUCTURE_TYPE_EVENT_QUERY_KERNEL_TIMESTAMPS_RESULTS_EXT_PROPERTIES:
    ze_structure_type_t = ze_structure_type_t(0x10012);
///< ::ze_kernel_max_group_size_properties_ext_t
pub const ZE_STRUCTURE_TYPE_KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES: ze_structure_type_t =
    ze_structure_type_t(0x10013);
///< ::ze_event_pool_counter_based_exp_desc_t
pub const ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC: ze_structure_type_t =
    ze_structure_type_t(0x20014);
///< ::ze_init_driver_type_desc_t
pub const ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC: ze_structure_type_t =
    ze_structure_type_t(0x20021);
///< ::ze_device_vector_width_properties_ext_t
pub const ZE_STRUCTURE_TYPE_DEVICE_VECTOR_WIDTH_PROPERTIES_EXT: ze_structure_type_t =
    ze_structure_type_t(0x20029);
///< ::ze_command_list_append_launch_kernel_param_cooperative_desc_t
pub const ZE_STRUCTURE_TYPE_COMMAND_LIST_APPEND_PARAM_COOPERATIVE_DESC: ze_structure_type_t =
    ze_structure_type_t(0x20036);
///< ::ze_event_counter_based_desc_t
pub const ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC: ze_structure_type_t =
    ze_structure_type_t(0x2003a);
pub const ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_EXTERNAL_SYNC_ALLOCATION_DESC: ze_structure_type_t =
    ze_structure_type_t(0x2003b);
pub const ZE_STRUCTURE_TYPE_EVENT_SYNC_MODE_DESC: ze_structure_type_t =
    ze_structure_type_t(0x2003c);
///< ::ze_ipc_mem_handle_type_ext_desc_t
pub const ZE_STRUCTURE_TYPE_IPC_MEM_HANDLE_TYPE_EXT_DESC: ze_structure_type_t =
    ze_structure_type_t(0x2003d);
pub const ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_EXTERNAL_AGGREGATE_STORAGE_DESC:
    ze_structure_type_t = ze_structure_type_t(0x2003f);
///< ::ze_physical_mem_properties_t
pub const ZE_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES: ze_structure_type_t =
    ze_structure_type_t(0x20040);

///< ::zes_device_ext_properties_t
pub const ZES_STRUCTURE_TYPE_DEVICE_EXT_PROPERTIES: zes_structure_type_t =
    zes_structure_type_t(0x2d);

/// Physical memory that belongs to no device (1.9).
pub const ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST: u32 = 1 << 1;
/// An IPC handle for this machine (1.15).
pub const ZE_IPC_MEM_HANDLE_TYPE_FLAG_DEFAULT: u32 = 1 << 0;
/// An IPC handle for other machines of a fabric (1.15).
pub const ZE_IPC_MEM_HANDLE_TYPE_FLAG_FABRIC_ACCESSIBLE: u32 = 1 << 1;

/// Which type of IPC handle is wanted (1.15).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_ipc_mem_handle_type_ext_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub typeFlags: u32,
}

///< ::ze_mutable_command_list_exp_properties_t
pub const ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_PROPERTIES: ze_structure_type_t =
    ze_structure_type_t(0x20015);
///< ::ze_mutable_command_list_exp_desc_t
pub const ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC: ze_structure_type_t =
    ze_structure_type_t(0x20016);
///< ::ze_mutable_command_id_exp_desc_t
pub const ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC: ze_structure_type_t =
    ze_structure_type_t(0x20017);
///< ::ze_mutable_commands_exp_desc_t
pub const ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC: ze_structure_type_t =
    ze_structure_type_t(0x20018);
///< ::ze_mutable_kernel_argument_exp_desc_t
pub const ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC: ze_structure_type_t =
    ze_structure_type_t(0x20019);
///< ::ze_mutable_group_count_exp_desc_t
pub const ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC: ze_structure_type_t =
    ze_structure_type_t(0x2001a);
///< ::ze_mutable_group_size_exp_desc_t
pub const ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC: ze_structure_type_t =
    ze_structure_type_t(0x2001b);
///< ::ze_mutable_global_offset_exp_desc_t
pub const ZE_STRUCTURE_TYPE_MUTABLE_GLOBAL_OFFSET_EXP_DESC: ze_structure_type_t =
    ze_structure_type_t(0x2001c);

/// What can be changed of a command of a mutable list (1.9).
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS: u32 = 1 << 0;
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT: u32 = 1 << 1;
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE: u32 = 1 << 2;
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_GLOBAL_OFFSET: u32 = 1 << 3;
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_SIGNAL_EVENT: u32 = 1 << 4;
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_WAIT_EVENTS: u32 = 1 << 5;
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_INSTRUCTION: u32 = 1 << 6;

/// What a device can change of mutable lists (1.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_mutable_command_list_exp_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub mutableCommandListFlags: u32,
    pub mutableCommandFlags: u32,
}

/// The device reports a fault when a page that is read-only is written (1.17).
pub const ZE_DEVICE_READONLY_MEMORY_CAPABILITY_ENFORCED: u32 = 2;
///< ::ze_device_readonly_memory_ext_properties_t
pub const ZE_STRUCTURE_TYPE_DEVICE_READONLY_MEMORY_EXT_PROPERTIES: ze_structure_type_t =
    ze_structure_type_t(0x10015);

/// What the read-only attribute of virtual memory does (1.17).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_device_readonly_memory_ext_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub readonlyCapability: u32,
}

///< ::ze_device_ip_version_ext_t
pub const ZE_STRUCTURE_TYPE_DEVICE_IP_VERSION_EXT: ze_structure_type_t =
    ze_structure_type_t(0x1000f);

/// The version of a device's architecture (1.5).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_device_ip_version_ext_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub ipVersion: u32,
}

/// Makes a list mutable (1.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_mutable_command_list_exp_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: u32,
}

/// What of the next command is to be changed (1.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_mutable_command_id_exp_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: u32,
}

/// Heads a chain of changes (1.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_mutable_commands_exp_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: u32,
}

/// Another value of a kernel's argument (1.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_mutable_kernel_argument_exp_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub commandId: u64,
    pub argIndex: u32,
    pub argSize: usize,
    pub pArgValue: *const c_void,
}

/// Another number of groups (1.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_mutable_group_count_exp_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub commandId: u64,
    pub pGroupCount: *const ze_group_count_t,
}

/// Another size of the groups (1.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_mutable_group_size_exp_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub commandId: u64,
    pub groupSizeX: u32,
    pub groupSizeY: u32,
    pub groupSizeZ: u32,
}

/// Another global offset (1.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_mutable_global_offset_exp_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub commandId: u64,
    pub offsetX: u32,
    pub offsetY: u32,
    pub offsetZ: u32,
}

///< ::ze_image_format_support_ext_properties_t
pub const ZE_STRUCTURE_TYPE_IMAGE_FORMAT_SUPPORT_EXT_PROPERTIES: ze_structure_type_t =
    ze_structure_type_t(0x10014);
///< ::ze_image_pitched_exp_desc_t
pub const ZE_STRUCTURE_TYPE_PITCHED_IMAGE_EXP_DESC: ze_structure_type_t =
    ze_structure_type_t(0x2001f);

/// Whether images of a format can be created (1.15).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_image_format_support_ext_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub supported: ze_bool_t,
}

/// The memory of an image that is created in memory of the program (1.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_image_pitched_exp_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub ptr: *mut c_void,
}

/// The properties of physical memory (1.15).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_physical_mem_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub id: u64,
    pub size: u64,
}

/// The driver types that `zeInitDrivers` returns (1.10).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_init_driver_type_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: u32,
}

/// A counter-based event without a pool (1.15).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_event_counter_based_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: u32,
    pub signal: u32,
    pub wait: u32,
}

/// An IPC handle of a counter-based event (1.15).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_ipc_event_counter_based_handle_t {
    pub data: [c_char; 64],
}

/// Extends an event pool's descriptor so that its events are counter-based (1.9).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_event_pool_counter_based_exp_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: u32,
}

/// The output buffers of `zeEventQueryKernelTimestampsExt` (1.6).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_event_query_kernel_timestamps_results_ext_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub pKernelTimestampsBuffer: *mut ze_kernel_timestamp_result_t,
    pub pSynchronizedTimestampsBuffer: *mut ze_synchronized_timestamp_result_ext_t,
}

/// A kernel's start and end on the host's clock (1.6).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ze_synchronized_timestamp_data_ext_t {
    pub kernelStart: u64,
    pub kernelEnd: u64,
}

/// A kernel's global and context timestamps on the host's clock (1.6).
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
    pub stype: ze_structure_type_t,
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

/// Extends the properties of a kernel by its maximum group size (extension `ZE_extension_kernel_max_group_size_properties`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_kernel_max_group_size_properties_ext_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub maxGroupSize: u32,
}

/// Extends the parameters of a launch to make it cooperative (1.14).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_command_list_append_launch_kernel_param_cooperative_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub isCooperative: ze_bool_t,
}

/// The work-items of a group (1.14).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_group_size_t {
    pub groupSizeX: u32,
    pub groupSizeY: u32,
    pub groupSizeZ: u32,
}

/// `zeCommandListHostSynchronize` (1.6).
pub type ze_pfnCommandListHostSynchronize_t =
    Option<unsafe extern "C" fn(ze_command_list_handle_t, u64) -> ze_result_t>;
/// `zeDriverGetLastErrorDescription` (1.6).
pub type ze_pfnDriverGetLastErrorDescription_t =
    Option<unsafe extern "C" fn(ze_driver_handle_t, *mut *const c_char) -> ze_result_t>;
/// `zeDeviceGetRootDevice` (1.7).
pub type ze_pfnDeviceGetRootDevice_t =
    Option<unsafe extern "C" fn(ze_device_handle_t, *mut ze_device_handle_t) -> ze_result_t>;

/// `zesInit` (1.5).
pub type zes_pfnInit_t = Option<unsafe extern "C" fn(u32) -> ze_result_t>;
/// `zesDriverGet` (1.5).
pub type zes_pfnDriverGet_t =
    Option<unsafe extern "C" fn(*mut u32, *mut zes_driver_handle_t) -> ze_result_t>;
/// `zesDeviceGet` (1.5).
pub type zes_pfnDeviceGet_t = Option<
    unsafe extern "C" fn(zes_driver_handle_t, *mut u32, *mut zes_device_handle_t) -> ze_result_t,
>;

/// A unique identifier of a device for system management (1.7).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct zes_uuid_t {
    pub id: [u8; 16],
}

/// More properties of a device for system management (1.7).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct zes_device_ext_properties_t {
    pub stype: zes_structure_type_t,
    pub pNext: *mut c_void,
    pub uuid: zes_uuid_t,
    /// `zes_device_type_t`, with the values of `ze_device_type_t`.
    pub type_: u32,
    /// `zes_device_property_flags_t`, with the values of `ze_device_property_flags_t`.
    pub flags: u32,
}

/// The functions of newer specifications that zeusm calls; `None` for those that the library lacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtensionFunctions {
    /// Waits for an immediate list.
    pub zeCommandListHostSynchronize: ze_pfnCommandListHostSynchronize_t,
    /// Describes the thread's last error.
    pub zeDriverGetLastErrorDescription: ze_pfnDriverGetLastErrorDescription_t,
    /// Returns the device that a sub-device is part of.
    pub zeDeviceGetRootDevice: ze_pfnDeviceGetRootDevice_t,
    /// Initialises system management.
    pub zesInit: zes_pfnInit_t,
    /// Lists the drivers of system management.
    pub zesDriverGet: zes_pfnDriverGet_t,
    /// Lists the devices of such a driver.
    pub zesDeviceGet: zes_pfnDeviceGet_t,
}

impl ExtensionFunctions {
    pub(crate) fn of(library: &libloading::Library) -> Self {
        // SAFETY: these are the function types of the specification.
        unsafe {
            Self {
                zeCommandListHostSynchronize: symbol(library, c"zeCommandListHostSynchronize"),
                zeDriverGetLastErrorDescription: symbol(
                    library,
                    c"zeDriverGetLastErrorDescription",
                ),
                zeDeviceGetRootDevice: symbol(library, c"zeDeviceGetRootDevice"),
                zesInit: symbol(library, c"zesInit"),
                zesDriverGet: symbol(library, c"zesDriverGet"),
                zesDeviceGet: symbol(library, c"zesDeviceGet"),
            }
        }
    }
}

/// Compile-time comparison with the declarations of the installed headers, generated by the build script.
#[allow(
    unused_imports,
    reason = "older headers have no declaration to compare"
)]
mod checks {
    use std::mem::{align_of, offset_of, size_of};

    use crate::{bindings, extensions};

    include!(concat!(env!("OUT_DIR"), "/extension_checks.rs"));
}
