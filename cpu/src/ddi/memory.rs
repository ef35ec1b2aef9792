//! Memory: USM, virtual and physical memory, images and samplers.

use std::ffi::c_void;

use level_zero_sys::extensions::ze_physical_mem_properties_t;
use level_zero_sys::*;

use crate::ddi::declare::functions;
use crate::handle::destroy;
use crate::opencl::Sampler;
use crate::{images, usm, virtual_memory};

functions! {
    zeMemAllocShared => usm::shared;
    zeMemAllocDevice => usm::device;
    zeMemAllocHost => usm::host;
    zeMemFree => usm::free;
    zeMemGetAllocProperties => usm::properties;
    zeMemGetAddressRange => usm::address_range;
    zeMemGetIpcHandle => usm::ipc::get;
    zeMemOpenIpcHandle => usm::ipc::open;
    zeMemCloseIpcHandle => usm::ipc::close;
    zeMemFreeExt => usm::free_with_policy;
    zeMemPutIpcHandle => usm::ipc::put;
    zeMemGetIpcHandleWithProperties => usm::ipc::get_with_properties;

    zeMemGetIpcHandleFromFileDescriptorExp => usm::ipc::from_descriptor;
    zeMemGetFileDescriptorFromIpcHandleExp => usm::ipc::to_descriptor;
    zeMemSetAtomicAccessAttributeExp => usm::set_atomic_access;
    zeMemGetAtomicAccessAttributeExp => usm::atomic_access;

    zePhysicalMemCreate => virtual_memory::create;
    zePhysicalMemDestroy => virtual_memory::destroy;
    zePhysicalMemGetProperties => virtual_memory::properties;

    zeVirtualMemReserve => virtual_memory::reserve;
    zeVirtualMemFree => virtual_memory::free;
    zeVirtualMemQueryPageSize => virtual_memory::page_size;
    zeVirtualMemMap => virtual_memory::map;
    zeVirtualMemUnmap => virtual_memory::unmap;
    zeVirtualMemSetAccessAttribute => virtual_memory::set_access;
    zeVirtualMemGetAccessAttribute => virtual_memory::access;

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
