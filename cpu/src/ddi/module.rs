//! Modules and kernels.

use level_zero_sys::*;

use crate::abi::entry::check;
use crate::ddi::declare::functions;
use crate::{kernel as kernels, module as modules};

functions! {
    zeModuleCreate => modules::create;
    zeModuleDestroy => modules::destroy;
    zeModuleDynamicLink => modules::link;
    zeModuleGetNativeBinary => modules::native_binary;
    zeModuleGetGlobalPointer => modules::global_pointer;
    zeModuleGetKernelNames => modules::kernel_names;
    zeModuleGetProperties => modules::module_properties;
    zeModuleGetFunctionPointer => modules::function_pointer;

    zeModuleBuildLogDestroy => modules::destroy_log;
    zeModuleBuildLogGetString => modules::log_text;

    zeKernelCreate => kernels::create;
    zeKernelDestroy => kernels::destroy;
    zeKernelSetCacheConfig => kernels::set_cache_config;
    zeKernelSetGroupSize(kernel: ze_kernel_handle_t, x: u32, y: u32, z: u32)
        = kernels::set_group_size(check(kernel)?, [x, y, z]);
    zeKernelSuggestGroupSize(
        kernel: ze_kernel_handle_t,
        width: u32,
        height: u32,
        depth: u32,
        x: *mut u32,
        y: *mut u32,
        z: *mut u32,
    ) = kernels::suggest_group_size(
        check(kernel)?,
        [width, height, depth],
        [check(x)?, check(y)?, check(z)?],
    );
    zeKernelSuggestMaxCooperativeGroupCount => kernels::suggest_cooperative_groups;
    zeKernelSetArgumentValue => kernels::set_argument;
    zeKernelSetIndirectAccess => kernels::set_indirect_access;
    zeKernelGetIndirectAccess => kernels::indirect_access;
    zeKernelGetSourceAttributes => kernels::source_attributes;
    zeKernelGetProperties => kernels::kernel_properties;
    zeKernelGetName => kernels::name;

    zeKernelSetGlobalOffsetExp(kernel: ze_kernel_handle_t, x: u32, y: u32, z: u32)
        = kernels::set_offset(check(kernel)?, [x, y, z]);
    zeKernelSchedulingHintExp => kernels::set_scheduling_hint;
}
