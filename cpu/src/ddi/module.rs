//! Modules and kernels.

use std::ffi::{c_char, c_void};

use level_zero_sys::*;

use super::ddi;
use crate::{kernel as kernels, module as modules};

ddi! {
    zeGetModuleProcAddrTable {
        0 zeModuleCreate(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_module_desc_t,
            module: *mut ze_module_handle_t,
            log: *mut ze_module_build_log_handle_t,
        ) => modules::create;
        0 zeModuleDestroy(module: ze_module_handle_t) => modules::destroy;
        0 zeModuleDynamicLink(
            count: u32,
            all: *mut ze_module_handle_t,
            log: *mut ze_module_build_log_handle_t,
        ) => modules::link;
        0 zeModuleGetNativeBinary(
            module: ze_module_handle_t,
            size: *mut usize,
            binary: *mut u8,
        ) => modules::native_binary;
        0 zeModuleGetGlobalPointer(
            module: ze_module_handle_t,
            name: *const c_char,
            size: *mut usize,
            pointer: *mut *mut c_void,
        ) => modules::global_pointer;
        0 zeModuleGetKernelNames(
            module: ze_module_handle_t,
            count: *mut u32,
            names: *mut *const c_char,
        ) => modules::kernel_names;
        0 zeModuleGetProperties(
            module: ze_module_handle_t,
            properties: *mut ze_module_properties_t,
        ) => modules::module_properties;
        0 zeModuleGetFunctionPointer(
            module: ze_module_handle_t,
            name: *const c_char,
            pointer: *mut *mut c_void,
        ) => modules::function_pointer;
        3 zeModuleInspectLinkageExt;
    }
    zeGetModuleBuildLogProcAddrTable {
        0 zeModuleBuildLogDestroy(log: ze_module_build_log_handle_t) => modules::destroy_log;
        0 zeModuleBuildLogGetString(
            log: ze_module_build_log_handle_t,
            size: *mut usize,
            text: *mut c_char,
        ) => modules::log_text;
    }
    zeGetKernelProcAddrTable {
        0 zeKernelCreate(
            module: ze_module_handle_t,
            desc: *const ze_kernel_desc_t,
            kernel: *mut ze_kernel_handle_t,
        ) => kernels::create;
        0 zeKernelDestroy(kernel: ze_kernel_handle_t) => kernels::destroy;
        0 zeKernelSetCacheConfig(kernel: ze_kernel_handle_t, flags: u32) => kernels::set_cache_config;
        0 zeKernelSetGroupSize(kernel: ze_kernel_handle_t, x: u32, y: u32, z: u32)
            = kernels::set_group_size(kernel, [x, y, z]);
        0 zeKernelSuggestGroupSize(
            kernel: ze_kernel_handle_t,
            width: u32,
            height: u32,
            depth: u32,
            x: *mut u32,
            y: *mut u32,
            z: *mut u32,
        ) = kernels::suggest_group_size(kernel, [width, height, depth], [x, y, z]);
        0 zeKernelSuggestMaxCooperativeGroupCount(
            kernel: ze_kernel_handle_t,
            count: *mut u32,
        ) => kernels::suggest_cooperative_groups;
        0 zeKernelSetArgumentValue(
            kernel: ze_kernel_handle_t,
            index: u32,
            size: usize,
            value: *const c_void,
        ) => kernels::set_argument;
        0 zeKernelSetIndirectAccess(kernel: ze_kernel_handle_t, flags: u32) => kernels::set_indirect_access;
        0 zeKernelGetIndirectAccess(kernel: ze_kernel_handle_t, flags: *mut u32) => kernels::indirect_access;
        0 zeKernelGetSourceAttributes(
            kernel: ze_kernel_handle_t,
            size: *mut u32,
            text: *mut *mut c_char,
        ) => kernels::source_attributes;
        0 zeKernelGetProperties(
            kernel: ze_kernel_handle_t,
            properties: *mut ze_kernel_properties_t,
        ) => kernels::kernel_properties;
        0 zeKernelGetName(kernel: ze_kernel_handle_t, size: *mut usize, name: *mut c_char) => kernels::name;
    }
    zeGetKernelExpProcAddrTable {
        1 zeKernelSetGlobalOffsetExp(kernel: ze_kernel_handle_t, x: u32, y: u32, z: u32)
            = kernels::set_offset(kernel, [x, y, z]);
        2 zeKernelSchedulingHintExp(
            kernel: ze_kernel_handle_t,
            hint: *mut ze_scheduling_hint_exp_desc_t,
        ) => kernels::set_scheduling_hint;
        11 zeKernelGetBinaryExp;
        14 zeKernelGetAllocationPropertiesExp;
    }
}
