//! What needs Linux: memory and events that processes share, virtual and physical memory, and the runtime's extension for
//! forks, `ZEUSM_experimental_forks`. Elsewhere these are functions that this runtime does not implement.

use std::ffi::c_void;

use level_zero_sys::extensions::{
    ze_ipc_event_counter_based_handle_t, ze_physical_mem_properties_t,
};
use level_zero_sys::*;

use crate::ddi::declare::functions;
use crate::{announcement, event, usm, virtual_memory};

functions! {
    zeMemGetIpcHandle => usm::ipc::get;
    zeMemOpenIpcHandle => usm::ipc::open;
    zeMemCloseIpcHandle => usm::ipc::close;
    zeMemPutIpcHandle => usm::ipc::put;
    zeMemGetIpcHandleWithProperties => usm::ipc::get_with_properties;
    zeMemGetIpcHandleFromFileDescriptorExp => usm::ipc::from_descriptor;
    zeMemGetFileDescriptorFromIpcHandleExp => usm::ipc::to_descriptor;

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

    zeEventCounterBasedGetIpcHandle => event::ipc::counter_handle;
    zeEventCounterBasedOpenIpcHandle => event::ipc::open_counter;
    zeEventCounterBasedCloseIpcHandle => event::ipc::close_counter;
    zeEventPoolGetIpcHandle => event::ipc::pool_handle;
    zeEventPoolOpenIpcHandle => event::ipc::open_pool;
    zeEventPoolCloseIpcHandle => event::ipc::close_pool;
    zeEventPoolPutIpcHandle => event::ipc::put_pool;

    zeusmDriverRequireForkAnnouncements(driver: ze_driver_handle_t) => announcement::require;
    zeusmDriverAnnounceFork(driver: ze_driver_handle_t) => announcement::announce;
}
