//! Extension entry points: the declarations of specifications newer than 1.4 that zeusm uses.
//!
//! The headers of Debian 12 (specification 1.4) do not contain them, so this is the only handwritten part of the bindings.
//! Names, values and layouts follow `ze_api.h` 1.17; they are part of the ABI and never change. The build fails if a
//! declaration differs from that of the installed headers.
#![allow(non_camel_case_types, non_snake_case, missing_docs)]

use std::ffi::{c_char, c_void};

use crate::bindings::*;
use crate::chain::{Extends, Structure};

/// "Kernel handle is invalid for the operation" (1.7).
pub const ZE_RESULT_ERROR_INVALID_KERNEL_HANDLE: ze_result_t = ze_result_t(0x7800_001c);
/// "Device is in survivability mode, firmware update needed" (1.9).
pub const ZE_RESULT_ERROR_SURVIVABILITY_MODE_DETECTED: ze_result_t = ze_result_t(0x7800_0020);
/// "Address not found within specified or current context" (1.9).
pub const ZE_RESULT_ERROR_ADDRESS_NOT_FOUND: ze_result_t = ze_result_t(0x7800_0021);
/// "Query API returned true" (1.17).
pub const ZE_RESULT_QUERY_TRUE: ze_result_t = ze_result_t(0x7800_0022);
/// "Query API returned false" (1.17).
pub const ZE_RESULT_QUERY_FALSE: ze_result_t = ze_result_t(0x7800_0023);
/// "Graph object is invalid" (1.17).
pub const ZE_RESULT_ERROR_INVALID_GRAPH: ze_result_t = ze_result_t(0x7800_0024);
/// "Operation is not supported during graph capture" (1.17).
pub const ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED: ze_result_t = ze_result_t(0x7800_0025);
/// "Operation failed because it would merge two graph captures" (1.17).
pub const ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT: ze_result_t = ze_result_t(0x7800_0027);
/// "Command list is not in graph capture mode" (1.17).
pub const ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING: ze_result_t = ze_result_t(0x7800_0028);
/// "Graph contains unjoined forks" (1.17).
pub const ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS: ze_result_t = ze_result_t(0x7800_0029);
/// "Operation failed because it uses a graph-internal counter-based event outside of the graph" (1.17).
pub const ZE_RESULT_ERROR_GRAPH_INTERNAL_EVENT: ze_result_t = ze_result_t(0x7800_002a);

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
/// A counter-based event that orders a graph and what is outside of it (1.17).
pub const ZE_EVENT_COUNTER_BASED_FLAG_GRAPH_EXTERNAL: u32 = 1 << 6;
/// `zeInitDrivers` returns GPU drivers (1.10).
pub const ZE_INIT_DRIVER_TYPE_FLAG_GPU: u32 = 1 << 0;

pub const ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_EXTERNAL_SYNC_ALLOCATION_DESC: ze_structure_type_t =
    ze_structure_type_t(0x2003b);
pub const ZE_STRUCTURE_TYPE_EVENT_SYNC_MODE_DESC: ze_structure_type_t =
    ze_structure_type_t(0x2003c);
pub const ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_EXTERNAL_AGGREGATE_STORAGE_DESC:
    ze_structure_type_t = ze_structure_type_t(0x2003f);

/// Host memory that was created from memory of the program (1.14).
pub const ZE_MEMORY_TYPE_HOST_IMPORTED: ze_memory_type_t = ze_memory_type_t(4);

/// Physical memory that belongs to no device (1.9).
pub const ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST: u32 = 1 << 1;
/// Host memory that devices only read (1.14).
pub const ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY: u32 = 1 << 4;
/// An IPC handle for this machine (1.15).
pub const ZE_IPC_MEM_HANDLE_TYPE_FLAG_DEFAULT: u32 = 1 << 0;
/// An IPC handle for other machines of a fabric (1.15).
pub const ZE_IPC_MEM_HANDLE_TYPE_FLAG_FABRIC_ACCESSIBLE: u32 = 1 << 1;

/// A function of the program that a device's command calls (1.17).
pub type ze_host_function_callback_t = Option<unsafe extern "C" fn(data: *mut c_void)>;

/// What can be changed of a command of a mutable list (1.9).
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS: u32 = 1 << 0;
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT: u32 = 1 << 1;
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE: u32 = 1 << 2;
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_GLOBAL_OFFSET: u32 = 1 << 3;
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_SIGNAL_EVENT: u32 = 1 << 4;
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_WAIT_EVENTS: u32 = 1 << 5;
pub const ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_INSTRUCTION: u32 = 1 << 6;

/// The device reports a fault when a page that is read-only is written (1.17).
pub const ZE_DEVICE_READONLY_MEMORY_CAPABILITY_ENFORCED: u32 = 2;

/// Graphs that cannot be changed can be recorded (1.17).
pub const ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_IMMUTABLE_GRAPH: u32 = 1 << 0;
/// A description of a graph that says little of each command (1.17).
pub const ZE_RECORD_REPLAY_GRAPH_EXT_DUMP_MODE_SIMPLE: u32 = 1;

/// What the handle of a graph points to (1.17).
#[repr(C)]
#[derive(Debug)]
pub struct _ze_graph_handle_t {
    unused: [u8; 0],
}

/// What the handle of an executable graph points to (1.17).
#[repr(C)]
#[derive(Debug)]
pub struct _ze_executable_graph_handle_t {
    unused: [u8; 0],
}

/// Called when a graph is destroyed (1.17).
pub type zex_mem_graph_free_callback_fn_t = Option<unsafe extern "C" fn(*mut c_void)>;

/// An IPC handle of a counter-based event (1.15).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_ipc_event_counter_based_handle_t {
    pub data: [c_char; 64],
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

/// The work-items of a group (1.14).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ze_group_size_t {
    pub groupSizeX: u32,
    pub groupSizeY: u32,
    pub groupSizeZ: u32,
}

/// Declares structures that begin with `stype` and `pNext`, each with the constant of its type.
macro_rules! structures {
    ($($(#[$doc:meta])* pub struct $name:ident: $stype:ident = $kind:ident($number:literal), *$next:tt {
        $($(#[$of_field:meta])* $field:ident: $type:ty,)*
    })*) => {$(
        pub const $stype: $kind = $kind($number);

        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            pub stype: $kind,
            pub pNext: *$next c_void,
            $($(#[$of_field])* pub $field: $type,)*
        }

        // SAFETY: the structure begins with stype and pNext.
        unsafe impl Structure for $name {
            const TYPES: &'static [ze_structure_type_t] = &[ze_structure_type_t($stype.0)];
        }
    )*};
}

structures! {
    /// Which type of IPC handle is wanted (1.15).
    pub struct ze_ipc_mem_handle_type_ext_desc_t: ZE_STRUCTURE_TYPE_IPC_MEM_HANDLE_TYPE_EXT_DESC = ze_structure_type_t(0x2003d), *const {
        typeFlags: u32,
    }

    /// Memory of the program that becomes host memory (1.14).
    pub struct ze_external_memmap_sysmem_ext_desc_t: ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC = ze_structure_type_t(0x20037), *const {
        pSystemMemory: *mut c_void,
        size: u64,
    }

    /// What a device can record (1.17).
    pub struct ze_record_replay_graph_ext_properties_t: ZE_STRUCTURE_TYPE_RECORD_REPLAY_GRAPH_EXT_PROPERTIES = ze_structure_type_t(0x20047), *mut {
        graphFlags: u32,
    }

    /// How a graph is described (1.17).
    pub struct ze_record_replay_graph_ext_dump_desc_t: ZE_STRUCTURE_TYPE_RECORD_REPLAY_GRAPH_EXT_DUMP_DESC = ze_structure_type_t(0x20048), *const {
        mode: u32,
    }

    /// Lifts the limits of an allocation (1.17).
    pub struct ze_relaxed_allocation_limits_ext_desc_t: ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXT_DESC = ze_structure_type_t(0x10016), *const {
        flags: u32,
    }

    /// How much of a device's memory can be allocated now (1.15).
    pub struct ze_device_usablemem_size_ext_properties_t: ZE_STRUCTURE_TYPE_DEVICE_USABLEMEM_SIZE_EXT_PROPERTIES = ze_structure_type_t(0x20041), *mut {
        currUsableMemSize: u64,
    }

    /// The length of a cache's line, in bytes (1.13).
    pub struct ze_device_cache_line_size_ext_t: ZE_STRUCTURE_TYPE_DEVICE_CACHELINE_SIZE_EXT = ze_structure_type_t(0x20028), *const {
        cacheLineSize: usize,
    }

    /// An allocation that a kernel uses, and by which argument (1.14).
    pub struct ze_kernel_allocation_exp_properties_t: ZE_STRUCTURE_TYPE_KERNEL_ALLOCATION_PROPERTIES = ze_structure_type_t(0x20039), *mut {
        base: u64,
        size: usize,
        type_: ze_memory_type_t,
        argIndex: u32,
    }

    /// What a device can change of mutable lists (1.9).
    pub struct ze_mutable_command_list_exp_properties_t: ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_PROPERTIES = ze_structure_type_t(0x20015), *mut {
        mutableCommandListFlags: u32,
        mutableCommandFlags: u32,
    }

    /// What the read-only attribute of virtual memory does (1.17).
    pub struct ze_device_readonly_memory_ext_properties_t: ZE_STRUCTURE_TYPE_DEVICE_READONLY_MEMORY_EXT_PROPERTIES = ze_structure_type_t(0x10015), *mut {
        readonlyCapability: u32,
    }

    /// The version of a device's architecture (1.5).
    pub struct ze_device_ip_version_ext_t: ZE_STRUCTURE_TYPE_DEVICE_IP_VERSION_EXT = ze_structure_type_t(0x1000f), *mut {
        ipVersion: u32,
    }

    /// Makes a list mutable (1.9).
    pub struct ze_mutable_command_list_exp_desc_t: ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC = ze_structure_type_t(0x20016), *const {
        flags: u32,
    }

    /// What of the next command is to be changed (1.9).
    pub struct ze_mutable_command_id_exp_desc_t: ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC = ze_structure_type_t(0x20017), *const {
        flags: u32,
    }

    /// Heads a chain of changes (1.9).
    pub struct ze_mutable_commands_exp_desc_t: ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC = ze_structure_type_t(0x20018), *const {
        flags: u32,
    }

    /// Another value of a kernel's argument (1.9).
    pub struct ze_mutable_kernel_argument_exp_desc_t: ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC = ze_structure_type_t(0x20019), *const {
        commandId: u64,
        argIndex: u32,
        argSize: usize,
        pArgValue: *const c_void,
    }

    /// Another number of groups (1.9).
    pub struct ze_mutable_group_count_exp_desc_t: ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC = ze_structure_type_t(0x2001a), *const {
        commandId: u64,
        pGroupCount: *const ze_group_count_t,
    }

    /// Another size of the groups (1.9).
    pub struct ze_mutable_group_size_exp_desc_t: ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC = ze_structure_type_t(0x2001b), *const {
        commandId: u64,
        groupSizeX: u32,
        groupSizeY: u32,
        groupSizeZ: u32,
    }

    /// Another global offset (1.9).
    pub struct ze_mutable_global_offset_exp_desc_t: ZE_STRUCTURE_TYPE_MUTABLE_GLOBAL_OFFSET_EXP_DESC = ze_structure_type_t(0x2001c), *const {
        commandId: u64,
        offsetX: u32,
        offsetY: u32,
        offsetZ: u32,
    }

    /// Whether images of a format can be created (1.15).
    pub struct ze_image_format_support_ext_properties_t: ZE_STRUCTURE_TYPE_IMAGE_FORMAT_SUPPORT_EXT_PROPERTIES = ze_structure_type_t(0x10014), *mut {
        supported: ze_bool_t,
    }

    /// The memory of an image that is created in memory of the program (1.9).
    pub struct ze_image_pitched_exp_desc_t: ZE_STRUCTURE_TYPE_PITCHED_IMAGE_EXP_DESC = ze_structure_type_t(0x2001f), *const {
        ptr: *mut c_void,
    }

    /// The properties of physical memory (1.15).
    pub struct ze_physical_mem_properties_t: ZE_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES = ze_structure_type_t(0x20040), *mut {
        id: u64,
        size: u64,
    }

    /// The driver types that `zeInitDrivers` returns (1.10).
    pub struct ze_init_driver_type_desc_t: ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC = ze_structure_type_t(0x20021), *const {
        flags: u32,
    }

    /// A counter-based event without a pool (1.15).
    pub struct ze_event_counter_based_desc_t: ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC = ze_structure_type_t(0x2003a), *const {
        flags: u32,
        signal: u32,
        wait: u32,
    }

    /// Extends an event pool's descriptor so that its events are counter-based (1.9).
    pub struct ze_event_pool_counter_based_exp_desc_t: ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC = ze_structure_type_t(0x20014), *const {
        flags: u32,
    }

    /// The output buffers of `zeEventQueryKernelTimestampsExt` (1.6).
    pub struct ze_event_query_kernel_timestamps_results_ext_properties_t: ZE_STRUCTURE_TYPE_EVENT_QUERY_KERNEL_TIMESTAMPS_RESULTS_EXT_PROPERTIES = ze_structure_type_t(0x10012), *mut {
        pKernelTimestampsBuffer: *mut ze_kernel_timestamp_result_t,
        pSynchronizedTimestampsBuffer: *mut ze_synchronized_timestamp_result_ext_t,
    }

    /// The SIMD widths of `zeDeviceGetVectorWidthPropertiesExt` (1.13), in elements.
    pub struct ze_device_vector_width_properties_ext_t: ZE_STRUCTURE_TYPE_DEVICE_VECTOR_WIDTH_PROPERTIES_EXT = ze_structure_type_t(0x20029), *mut {
        vector_width_size: u32,
        preferred_vector_width_char: u32,
        preferred_vector_width_short: u32,
        preferred_vector_width_int: u32,
        preferred_vector_width_long: u32,
        preferred_vector_width_float: u32,
        preferred_vector_width_double: u32,
        preferred_vector_width_half: u32,
        native_vector_width_char: u32,
        native_vector_width_short: u32,
        native_vector_width_int: u32,
        native_vector_width_long: u32,
        native_vector_width_float: u32,
        native_vector_width_double: u32,
        native_vector_width_half: u32,
    }

    /// Extends the properties of a kernel by its maximum group size (extension `ZE_extension_kernel_max_group_size_properties`).
    pub struct ze_kernel_max_group_size_properties_ext_t: ZE_STRUCTURE_TYPE_KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES = ze_structure_type_t(0x10013), *mut {
        maxGroupSize: u32,
    }

    /// Extends the parameters of a launch to make it cooperative (1.14).
    pub struct ze_command_list_append_launch_kernel_param_cooperative_desc_t: ZE_STRUCTURE_TYPE_COMMAND_LIST_APPEND_PARAM_COOPERATIVE_DESC = ze_structure_type_t(0x20036), *const {
        isCooperative: ze_bool_t,
    }

    /// More properties of a device for system management (1.7).
    pub struct zes_device_ext_properties_t: ZES_STRUCTURE_TYPE_DEVICE_EXT_PROPERTIES = zes_structure_type_t(0x2d), *mut {
        uuid: zes_uuid_t,
        /// `zes_device_type_t`, with the values of `ze_device_type_t`.
        type_: u32,
        /// `zes_device_property_flags_t`, with the values of `ze_device_property_flags_t`.
        flags: u32,
    }
}

// SAFETY: Level Zero specification, `ze_external_memmap_sysmem_ext_desc_t`.
unsafe impl Extends<ze_host_mem_alloc_desc_t> for ze_external_memmap_sysmem_ext_desc_t {}

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
