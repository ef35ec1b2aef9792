//! Memory: USM, virtual and physical memory, images and samplers.

use std::ffi::c_void;

use level_zero_sys::extensions::ze_physical_mem_properties_t;
use level_zero_sys::*;

use super::ddi;
use crate::{images, usm, virtual_memory};

ddi! {
    zeGetMemProcAddrTable {
        0 zeMemAllocShared(
            context: ze_context_handle_t,
            device_desc: *const ze_device_mem_alloc_desc_t,
            host_desc: *const ze_host_mem_alloc_desc_t,
            size: usize,
            alignment: usize,
            device: ze_device_handle_t,
            pointer: *mut *mut c_void,
        ) => usm::shared;
        0 zeMemAllocDevice(
            context: ze_context_handle_t,
            desc: *const ze_device_mem_alloc_desc_t,
            size: usize,
            alignment: usize,
            device: ze_device_handle_t,
            pointer: *mut *mut c_void,
        ) => usm::device;
        0 zeMemAllocHost(
            context: ze_context_handle_t,
            desc: *const ze_host_mem_alloc_desc_t,
            size: usize,
            alignment: usize,
            pointer: *mut *mut c_void,
        ) => usm::host;
        0 zeMemFree(context: ze_context_handle_t, pointer: *mut c_void) => usm::free;
        0 zeMemGetAllocProperties(
            context: ze_context_handle_t,
            pointer: *const c_void,
            properties: *mut ze_memory_allocation_properties_t,
            device: *mut ze_device_handle_t,
        ) => usm::properties;
        0 zeMemGetAddressRange(
            context: ze_context_handle_t,
            pointer: *const c_void,
            base: *mut *mut c_void,
            size: *mut usize,
        ) => usm::address_range;
        0 zeMemGetIpcHandle(
            context: ze_context_handle_t,
            pointer: *const c_void,
            handle: *mut ze_ipc_mem_handle_t,
        ) => usm::ipc::get;
        0 zeMemOpenIpcHandle(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            handle: ze_ipc_mem_handle_t,
            flags: ze_ipc_memory_flags_t,
            pointer: *mut *mut c_void,
        ) = usm::ipc::open(context, device, &handle, flags, pointer);
        0 zeMemCloseIpcHandle(context: ze_context_handle_t, pointer: *const c_void) => usm::ipc::close;
        3 zeMemFreeExt(
            context: ze_context_handle_t,
            desc: *const ze_memory_free_ext_desc_t,
            pointer: *mut c_void,
        ) => usm::free_with_policy;
        6 zeMemPutIpcHandle(context: ze_context_handle_t, handle: ze_ipc_mem_handle_t)
            = usm::ipc::put(context, &handle);
        9 zeMemGetPitchFor2dImage;
        15 zeMemGetIpcHandleWithProperties(
            context: ze_context_handle_t,
            pointer: *const c_void,
            next: *mut c_void,
            handle: *mut ze_ipc_mem_handle_t,
        ) => usm::ipc::get_with_properties;
    }
    zeGetMemExpProcAddrTable {
        6 zeMemGetIpcHandleFromFileDescriptorExp(
            context: ze_context_handle_t,
            descriptor: u64,
            handle: *mut ze_ipc_mem_handle_t,
        ) => usm::ipc::from_descriptor;
        6 zeMemGetFileDescriptorFromIpcHandleExp(
            context: ze_context_handle_t,
            handle: ze_ipc_mem_handle_t,
            descriptor: *mut u64,
        ) = usm::ipc::to_descriptor(context, &handle, descriptor);
        7 zeMemSetAtomicAccessAttributeExp(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            pointer: *const c_void,
            size: usize,
            attribute: u32,
        ) => usm::set_atomic_access;
        7 zeMemGetAtomicAccessAttributeExp(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            pointer: *const c_void,
            size: usize,
            attribute: *mut u32,
        ) => usm::atomic_access;
    }
    zeGetPhysicalMemProcAddrTable {
        0 zePhysicalMemCreate(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *mut ze_physical_mem_desc_t,
            physical: *mut ze_physical_mem_handle_t,
        ) => virtual_memory::create;
        0 zePhysicalMemDestroy(
            context: ze_context_handle_t,
            physical: ze_physical_mem_handle_t,
        ) => virtual_memory::destroy;
        15 zePhysicalMemGetProperties(
            context: ze_context_handle_t,
            physical: ze_physical_mem_handle_t,
            properties: *mut ze_physical_mem_properties_t,
        ) => virtual_memory::properties;
    }
    zeGetVirtualMemProcAddrTable {
        0 zeVirtualMemReserve(
            context: ze_context_handle_t,
            wanted: *const c_void,
            size: usize,
            pointer: *mut *mut c_void,
        ) => virtual_memory::reserve;
        0 zeVirtualMemFree(
            context: ze_context_handle_t,
            pointer: *const c_void,
            size: usize,
        ) => virtual_memory::free;
        0 zeVirtualMemQueryPageSize(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            size: usize,
            page_size: *mut usize,
        ) => virtual_memory::page_size;
        0 zeVirtualMemMap(
            context: ze_context_handle_t,
            pointer: *const c_void,
            size: usize,
            physical: ze_physical_mem_handle_t,
            offset: usize,
            access: ze_memory_access_attribute_t,
        ) => virtual_memory::map;
        0 zeVirtualMemUnmap(
            context: ze_context_handle_t,
            pointer: *const c_void,
            size: usize,
        ) => virtual_memory::unmap;
        0 zeVirtualMemSetAccessAttribute(
            context: ze_context_handle_t,
            pointer: *const c_void,
            size: usize,
            access: ze_memory_access_attribute_t,
        ) => virtual_memory::set_access;
        0 zeVirtualMemGetAccessAttribute(
            context: ze_context_handle_t,
            pointer: *const c_void,
            size: usize,
            access: *mut ze_memory_access_attribute_t,
            out_size: *mut usize,
        ) => virtual_memory::access;
    }
    zeGetImageProcAddrTable {
        0 zeImageGetProperties(
            device: ze_device_handle_t,
            desc: *const ze_image_desc_t,
            properties: *mut ze_image_properties_t,
        ) => images::properties;
        0 zeImageCreate(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_image_desc_t,
            image: *mut ze_image_handle_t,
        ) => images::create;
        0 zeImageDestroy(image: ze_image_handle_t) => images::destroy;
        3 zeImageGetAllocPropertiesExt(
            context: ze_context_handle_t,
            image: ze_image_handle_t,
            properties: *mut ze_image_allocation_ext_properties_t,
        ) => images::allocation_properties;
        5 zeImageViewCreateExt(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_image_desc_t,
            image: ze_image_handle_t,
            view: *mut ze_image_handle_t,
        ) => images::create_view;
    }
    zeGetImageExpProcAddrTable {
        2 zeImageGetMemoryPropertiesExp(
            image: ze_image_handle_t,
            properties: *mut ze_image_memory_properties_exp_t,
        ) => images::memory_properties;
        2 zeImageViewCreateExp(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_image_desc_t,
            image: ze_image_handle_t,
            view: *mut ze_image_handle_t,
        ) => images::create_view;
        9 zeImageGetDeviceOffsetExp;
    }
    zeGetSamplerProcAddrTable {
        0 zeSamplerCreate(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_sampler_desc_t,
            sampler: *mut ze_sampler_handle_t,
        ) => images::create_sampler;
        0 zeSamplerDestroy(sampler: ze_sampler_handle_t) => images::destroy_sampler;
    }
    zeGetRTASBuilderProcAddrTable {
        13 zeRTASBuilderCreateExt;
        13 zeRTASBuilderGetBuildPropertiesExt;
        13 zeRTASBuilderBuildExt;
        13 zeRTASBuilderCommandListAppendCopyExt;
        13 zeRTASBuilderDestroyExt;
    }
    zeGetRTASBuilderExpProcAddrTable {
        7 zeRTASBuilderCreateExp;
        7 zeRTASBuilderGetBuildPropertiesExp;
        7 zeRTASBuilderBuildExp;
        7 zeRTASBuilderDestroyExp;
    }
    zeGetRTASParallelOperationProcAddrTable {
        13 zeRTASParallelOperationCreateExt;
        13 zeRTASParallelOperationGetPropertiesExt;
        13 zeRTASParallelOperationJoinExt;
        13 zeRTASParallelOperationDestroyExt;
    }
    zeGetRTASParallelOperationExpProcAddrTable {
        7 zeRTASParallelOperationCreateExp;
        7 zeRTASParallelOperationGetPropertiesExp;
        7 zeRTASParallelOperationJoinExp;
        7 zeRTASParallelOperationDestroyExp;
    }
}
