//! Memory: USM, virtual and physical memory, images and samplers.

use std::ffi::c_void;

use level_zero_sys::extensions::ze_physical_mem_properties_t;
use level_zero_sys::*;

use crate::ddi::declare::functions;
use crate::{images, usm, virtual_memory};

functions! {
    zeMemAllocShared => usm::shared;
    zeMemAllocDevice => usm::device;
    zeMemAllocHost => usm::host;
    zeMemFree => usm::free;
    zeMemGetAllocProperties => usm::properties;
    zeMemGetAddressRange => usm::address_range;
    zeMemGetIpcHandle => usm::ipc::get;
    zeMemOpenIpcHandle(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        handle: ze_ipc_mem_handle_t,
        flags: ze_ipc_memory_flags_t,
        pointer: *mut *mut c_void,
    ) => usm::ipc::open;
    zeMemCloseIpcHandle => usm::ipc::close;
    zeMemFreeExt => usm::free_with_policy;
    zeMemPutIpcHandle(context: ze_context_handle_t, handle: ze_ipc_mem_handle_t) => usm::ipc::put;
    zeMemGetIpcHandleWithProperties(
        context: ze_context_handle_t,
        pointer: *const c_void,
        next: *mut c_void,
        handle: *mut ze_ipc_mem_handle_t,
    ) => usm::ipc::get_with_properties;

    zeMemGetIpcHandleFromFileDescriptorExp(
        context: ze_context_handle_t,
        descriptor: u64,
        handle: *mut ze_ipc_mem_handle_t,
    ) => usm::ipc::from_descriptor;
    zeMemGetFileDescriptorFromIpcHandleExp(
        context: ze_context_handle_t,
        handle: ze_ipc_mem_handle_t,
        descriptor: *mut u64,
    ) => usm::ipc::to_descriptor;
    zeMemSetAtomicAccessAttributeExp(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        pointer: *const c_void,
        size: usize,
        attribute: u32,
    ) => usm::set_atomic_access;
    zeMemGetAtomicAccessAttributeExp(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        pointer: *const c_void,
        size: usize,
        attribute: *mut u32,
    ) => usm::atomic_access;

    zePhysicalMemCreate => virtual_memory::create;
    zePhysicalMemDestroy => virtual_memory::destroy;
    zePhysicalMemGetProperties(
        context: ze_context_handle_t,
        physical: ze_physical_mem_handle_t,
        properties: *mut ze_physical_mem_properties_t,
    ) => virtual_memory::properties;

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
    zeImageViewCreateExt(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *const ze_image_desc_t,
        image: ze_image_handle_t,
        view: *mut ze_image_handle_t,
    ) => images::create_view;

    zeImageGetMemoryPropertiesExp => images::memory_properties;
    zeImageViewCreateExp => images::create_view;

    zeSamplerCreate => images::create_sampler;
    zeSamplerDestroy => images::destroy_sampler;
}
