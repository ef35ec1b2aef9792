//! Modules and kernels.

use level_zero_sys::extensions::ze_kernel_allocation_exp_properties_t;
use level_zero_sys::*;

use crate::ddi::declare::functions;
use crate::handle::destroy;
use crate::kernel::{self as kernels, Kernel};
use crate::module::{self as modules, BuildLog};

functions! {
    zeModuleCreate => modules::create;
    zeModuleDestroy => modules::destroy;
    zeModuleDynamicLink => modules::link;
    zeModuleGetNativeBinary => modules::native_binary;
    zeModuleGetGlobalPointer => modules::global_pointer;
    zeModuleGetKernelNames => modules::kernel_names;
    zeModuleGetProperties => modules::module_properties;
    zeModuleGetFunctionPointer => modules::function_pointer;

    zeModuleBuildLogDestroy => destroy::<BuildLog>;
    zeModuleBuildLogGetString => modules::log_text;

    zeKernelCreate => kernels::create;
    zeKernelDestroy => destroy::<Kernel>;
    zeKernelSetCacheConfig => kernels::set_cache_config;
    zeKernelSetGroupSize => kernels::set_group_size;
    zeKernelSuggestGroupSize => kernels::suggest_group_size;
    zeKernelSuggestMaxCooperativeGroupCount => kernels::suggest_cooperative_groups;
    zeKernelSetArgumentValue => kernels::set_argument;
    zeKernelSetIndirectAccess => kernels::set_indirect_access;
    zeKernelGetIndirectAccess => kernels::indirect_access;
    zeKernelGetSourceAttributes => kernels::source_attributes;
    zeKernelGetProperties => kernels::kernel_properties;
    zeKernelGetName => kernels::name;

    zeKernelGetAllocationPropertiesExp => kernels::allocations;
    zeKernelSetGlobalOffsetExp => kernels::set_offset;
    zeKernelSchedulingHintExp => kernels::set_scheduling_hint;
}
