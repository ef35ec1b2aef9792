//! Memory: USM, images and samplers.

use std::ffi::c_void;

use level_zero_sys::*;

use crate::ddi::declare::functions;
use crate::handle::destroy;
use crate::opencl::Sampler;
use crate::{images, usm};

functions! {
    zeMemAllocShared => usm::shared;
    zeMemAllocDevice => usm::device;
    zeMemAllocHost => usm::host;
    zeMemFree => usm::free;
    zeMemGetAllocProperties => usm::properties;
    zeMemGetAddressRange => usm::address_range;
    zeMemFreeExt => usm::free_with_policy;

    zeMemSetAtomicAccessAttributeExp => usm::set_atomic_access;
    zeMemGetAtomicAccessAttributeExp => usm::atomic_access;

    zeImageGetProperties => images::properties;
    zeImageCreate => images::create;
    zeImageDestroy => images::destroy;
    zeImageGetAllocPropertiesExt => images::allocation_properties;
    zeImageViewCreateExt => images::create_view;

    zeImageGetMemoryPropertiesExp => images::memory_properties;
    zeImageViewCreateExp => images::create_view;

    zeSamplerCreate => images::create_sampler;
    zeSamplerDestroy => destroy::<Sampler>;
}
