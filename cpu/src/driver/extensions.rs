//! The extensions that the driver supports, one per line.

use level_zero_sys as sys;

use crate::abi::arguments::text;

/// Name and version, major in the upper and minor in the lower 16 bits.
const EXTENSIONS: &[(&str, u32)] = &[
    ("ZE_extension_memory_free_policies", 1 << 16),
    ("ZE_extension_event_query_kernel_timestamps", 1 << 16),
    ("ZE_extension_eu_count", 1 << 16),
    ("ZE_extension_pci_properties", 1 << 16),
    ("ZE_extension_float_atomics", 1 << 16),
    ("ZE_extension_device_vector_sizes", 1 << 16),
    ("ZE_extension_kernel_max_group_size_properties", 1 << 16),
    ("ZE_extension_image_copy", 1 << 16),
    ("ZE_extension_image_query_alloc_properties", 1 << 16),
    ("ZE_extension_image_view", 1 << 16),
    ("ZE_extension_image_format_support", 1 << 16),
    ("ZE_extension_external_memmap_sysmem", 1 << 16),
    ("ZE_extension_relaxed_allocation_limits", 1 << 16),
    ("ZE_extension_device_usablemem_size_properties", 1 << 16),
    ("ZE_extension_device_cache_line_size", 1 << 16),
    ("ZE_extension_record_replay_graph", 1 << 16),
    ("ZE_experimental_bandwidth_properties", 1 << 16),
    ("ZE_experimental_kernel_allocation_properties", 1 << 16),
    ("ZE_experimental_module_program", 1 << 16),
    ("ZE_experimental_scheduling_hints", 1 << 16),
    ("ZE_experimental_image_memory_properties", 1 << 16),
    ("ZE_experimental_image_view", 1 << 16),
    ("ZE_experimental_global_offset", 1 << 16),
    ("ZE_experimental_relaxed_allocation_limits", 1 << 16),
    ("ZE_experimental_event_query_timestamps", 1 << 16),
    ("ZE_experimental_event_pool_counter_based", 1 << 16),
    ("ZE_experimental_immediate_command_list_append", 1 << 16),
    ("ZE_experimental_mutable_command_list", 1 << 16 | 1),
    ("ZEUSM_experimental_devices", 1 << 16),
    ("ZEUSM_experimental_module_cache", 1 << 16),
];

/// Those that need Linux.
#[cfg(target_os = "linux")]
const OF_SYSTEM: &[(&str, u32)] = &[
    ("ZE_extension_ipc_mem_handle_type", 1 << 16),
    ("ZE_extension_virtual_mem_readonly_properties", 1 << 16),
    ("ZEUSM_experimental_forks", 1 << 16),
];
/// Those that need Windows: none.
#[cfg(windows)]
const OF_SYSTEM: &[(&str, u32)] = &[];

/// The list as the API gives it.
pub fn all() -> Vec<sys::ze_driver_extension_properties_t> {
    let all = EXTENSIONS.iter().chain(OF_SYSTEM);
    all.map(|(name, version)| sys::ze_driver_extension_properties_t {
        name: text(name),
        version: *version,
    })
    .collect()
}
