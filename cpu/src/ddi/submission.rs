//! Queues, lists, fences and events.

use std::ffi::c_void;
use std::ptr;

use level_zero_sys::extensions::{
    ze_event_counter_based_desc_t, ze_event_query_kernel_timestamps_results_ext_properties_t,
    ze_group_size_t, ze_ipc_event_counter_based_handle_t, ze_mutable_command_id_exp_desc_t,
    ze_mutable_commands_exp_desc_t,
};
use level_zero_sys::*;

use crate::abi::entry::check;
use crate::command_list::{self as list, Events, RegionArgument};
use crate::ddi::declare::functions;
use crate::images::Pitches;
use crate::queue::{self, fence};
use crate::{event, images, launch};

functions! {
    zeCommandQueueCreate => queue::create;
    zeCommandQueueDestroy => queue::destroy;
    zeCommandQueueExecuteCommandLists => queue::execute;
    zeCommandQueueSynchronize => queue::synchronize;
    zeCommandQueueGetOrdinal(queue: ze_command_queue_handle_t, ordinal: *mut u32) => queue::ordinal;
    zeCommandQueueGetIndex(queue: ze_command_queue_handle_t, index: *mut u32) => queue::index;
    zeCommandQueueGetFlags(queue: ze_command_queue_handle_t, flags: *mut u32) => queue::creation_flags;
    zeCommandQueueGetMode(queue: ze_command_queue_handle_t, mode: *mut ze_command_queue_mode_t) => queue::mode;
    zeCommandQueueGetPriority(
        queue: ze_command_queue_handle_t,
        priority: *mut ze_command_queue_priority_t,
    ) => queue::priority;

    zeCommandListCreate => list::create;
    zeCommandListCreateImmediate => list::create_immediate;
    zeCommandListDestroy => list::destroy;
    zeCommandListClose => list::close;
    zeCommandListReset => list::reset;
    zeCommandListAppendWriteGlobalTimestamp => list::append_timestamp;
    zeCommandListAppendBarrier => list::append_barrier;
    zeCommandListAppendMemoryRangesBarrier => list::append_ranges_barrier;
    zeCommandListAppendMemoryCopy => list::append_copy;
    zeCommandListAppendMemoryFill => list::append_fill;
    zeCommandListAppendMemoryCopyRegion(
        list: ze_command_list_handle_t,
        to: *mut c_void,
        to_region: *const ze_copy_region_t,
        to_pitch: u32,
        to_slice_pitch: u32,
        from: *const c_void,
        from_region: *const ze_copy_region_t,
        from_pitch: u32,
        from_slice_pitch: u32,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) = list::append_copy_region(
        check(list)?,
        RegionArgument { base: to, region: check(to_region)?, pitch: to_pitch, slice_pitch: to_slice_pitch },
        RegionArgument { base: from, region: check(from_region)?, pitch: from_pitch, slice_pitch: from_slice_pitch },
        Events::new(signal, count, waits),
    );
    zeCommandListAppendMemoryCopyFromContext => list::append_copy_from_context;
    zeCommandListAppendImageCopy => images::append_copy;
    zeCommandListAppendImageCopyRegion => images::append_copy_region;
    zeCommandListAppendImageCopyToMemory(
        list: ze_command_list_handle_t,
        to: *mut c_void,
        from: ze_image_handle_t,
        region: *const ze_image_region_t,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) = images::append_copy_to_memory(
        check(list)?, check(to)?, check(from)?, check(region)?, Pitches::default(), Events::new(signal, count, waits),
    );
    zeCommandListAppendImageCopyFromMemory(
        list: ze_command_list_handle_t,
        to: ze_image_handle_t,
        from: *const c_void,
        region: *const ze_image_region_t,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) = images::append_copy_from_memory(
        check(list)?, check(to)?, check(from)?, check(region)?, Pitches::default(), Events::new(signal, count, waits),
    );
    zeCommandListAppendMemoryPrefetch => list::append_prefetch;
    zeCommandListAppendMemAdvise => list::append_advice;
    zeCommandListAppendSignalEvent => list::append_signal;
    zeCommandListAppendWaitOnEvents => list::append_wait;
    zeCommandListAppendEventReset => list::append_reset;
    zeCommandListAppendQueryKernelTimestamps => list::append_query_timestamps;
    zeCommandListAppendLaunchKernel(
        list: ze_command_list_handle_t,
        kernel: ze_kernel_handle_t,
        groups: *const ze_group_count_t,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) = launch::append(
        check(list)?, check(kernel)?, check(groups)?, check(ptr::null::<c_void>())?, Events::new(signal, count, waits));
    zeCommandListAppendLaunchCooperativeKernel => launch::append_cooperative;
    zeCommandListAppendLaunchKernelIndirect => launch::append_indirect;
    zeCommandListAppendLaunchMultipleKernelsIndirect => launch::append_multiple_indirect;
    zeCommandListAppendImageCopyToMemoryExt(
        list: ze_command_list_handle_t,
        to: *mut c_void,
        from: ze_image_handle_t,
        region: *const ze_image_region_t,
        row: u32,
        slice: u32,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) = images::append_copy_to_memory(
        check(list)?, check(to)?, check(from)?, check(region)?, Pitches { row, slice }, Events::new(signal, count, waits),
    );
    zeCommandListAppendImageCopyFromMemoryExt(
        list: ze_command_list_handle_t,
        to: ze_image_handle_t,
        from: *const c_void,
        region: *const ze_image_region_t,
        row: u32,
        slice: u32,
        signal: ze_event_handle_t,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) = images::append_copy_from_memory(
        check(list)?, check(to)?, check(from)?, check(region)?, Pitches { row, slice }, Events::new(signal, count, waits),
    );
    zeCommandListHostSynchronize(list: ze_command_list_handle_t, timeout: u64) => list::host_synchronize;
    zeCommandListGetDeviceHandle(
        list: ze_command_list_handle_t,
        device: *mut ze_device_handle_t,
    ) => list::device_handle;
    zeCommandListGetContextHandle(
        list: ze_command_list_handle_t,
        context: *mut ze_context_handle_t,
    ) => list::context_handle;
    zeCommandListGetOrdinal(list: ze_command_list_handle_t, ordinal: *mut u32) => list::ordinal;
    zeCommandListImmediateGetIndex(list: ze_command_list_handle_t, index: *mut u32) => list::index;
    zeCommandListIsImmediate(list: ze_command_list_handle_t, value: *mut ze_bool_t) => list::is_immediate;
    zeCommandListAppendLaunchKernelWithParameters(
        list: ze_command_list_handle_t,
        kernel: ze_kernel_handle_t,
        groups: *const ze_group_count_t,
        next: *const c_void; events
    ) => launch::append;
    zeCommandListAppendLaunchKernelWithArguments(
        list: ze_command_list_handle_t,
        kernel: ze_kernel_handle_t,
        groups: ze_group_count_t,
        group: ze_group_size_t,
        arguments: *const *const c_void,
        next: *const c_void; events
    ) => launch::append_with_arguments;
    zeCommandListGetFlags(list: ze_command_list_handle_t, flags: *mut u32) => list::creation_flags;
    zeCommandListImmediateGetFlags(list: ze_command_list_handle_t, flags: *mut u32) => list::queue_flags;
    zeCommandListImmediateGetMode(
        list: ze_command_list_handle_t,
        mode: *mut ze_command_queue_mode_t,
    ) => list::mode;
    zeCommandListImmediateGetPriority(
        list: ze_command_list_handle_t,
        priority: *mut ze_command_queue_priority_t,
    ) => list::priority;

    zeCommandListImmediateAppendCommandListsExp(
        list: ze_command_list_handle_t,
        lists_count: u32,
        lists: *mut ze_command_list_handle_t; events
    ) => list::append_lists;
    zeCommandListGetNextCommandIdExp(
        list: ze_command_list_handle_t,
        desc: *const ze_mutable_command_id_exp_desc_t,
        id: *mut u64,
    ) => list::next_command_id;
    zeCommandListUpdateMutableCommandsExp(
        list: ze_command_list_handle_t,
        desc: *const ze_mutable_commands_exp_desc_t,
    ) => launch::update;
    zeCommandListUpdateMutableCommandSignalEventExp(
        list: ze_command_list_handle_t,
        id: u64,
        signal: ze_event_handle_t,
    ) => list::update_signal;
    zeCommandListUpdateMutableCommandWaitEventsExp(
        list: ze_command_list_handle_t,
        id: u64,
        count: u32,
        waits: *mut ze_event_handle_t,
    ) => list::update_waits;
    zeCommandListGetNextCommandIdWithKernelsExp(
        list: ze_command_list_handle_t,
        desc: *const ze_mutable_command_id_exp_desc_t,
        _count: u32,
        _kernels: *mut ze_kernel_handle_t,
        id: *mut u64,
    ) = list::next_command_id(check(list)?, check(desc)?, check(id)?);
    zeCommandListUpdateMutableCommandKernelsExp(
        list: ze_command_list_handle_t,
        count: u32,
        ids: *mut u64,
        kernels: *mut ze_kernel_handle_t,
    ) => launch::update_kernels;
    zeCommandListIsMutableExp(
        list: ze_command_list_handle_t,
        value: *mut ze_bool_t,
    ) => list::is_mutable_list;

    zeEventCreate => event::create;
    zeEventDestroy => event::destroy;
    zeEventHostSignal => event::host_signal;
    zeEventHostSynchronize => event::host_synchronize;
    zeEventQueryStatus => event::query_status;
    zeEventHostReset => event::host_reset;
    zeEventQueryKernelTimestamp => event::query_kernel_timestamp;
    zeEventQueryKernelTimestampsExt(
        event: ze_event_handle_t,
        device: ze_device_handle_t,
        count: *mut u32,
        results: *mut ze_event_query_kernel_timestamps_results_ext_properties_t,
    ) => event::query_kernel_timestamps;
    zeEventGetEventPool(event: ze_event_handle_t, pool: *mut ze_event_pool_handle_t) => event::event_pool;
    zeEventGetSignalScope(event: ze_event_handle_t, scope: *mut u32) => event::signal_scope;
    zeEventGetWaitScope(event: ze_event_handle_t, scope: *mut u32) => event::wait_scope;
    zeEventCounterBasedCreate(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *const ze_event_counter_based_desc_t,
        event: *mut ze_event_handle_t,
    ) => event::create_counter_based;
    zeEventCounterBasedGetIpcHandle(
        event: ze_event_handle_t,
        handle: *mut ze_ipc_event_counter_based_handle_t,
    ) => event::ipc::counter_handle;
    zeEventCounterBasedOpenIpcHandle(
        context: ze_context_handle_t,
        handle: ze_ipc_event_counter_based_handle_t,
        event: *mut ze_event_handle_t,
    ) => event::ipc::open_counter;
    zeEventCounterBasedCloseIpcHandle(event: ze_event_handle_t) => event::ipc::close_counter;
    zeEventGetCounterBasedFlags(event: ze_event_handle_t, flags: *mut u32) => event::counter_based_flags;

    zeEventQueryTimestampsExp => event::query_timestamps;

    zeEventPoolCreate => event::create_pool;
    zeEventPoolDestroy => event::destroy_pool;
    zeEventPoolGetIpcHandle => event::ipc::pool_handle;
    zeEventPoolOpenIpcHandle(
        context: ze_context_handle_t,
        handle: ze_ipc_event_pool_handle_t,
        pool: *mut ze_event_pool_handle_t,
    ) => event::ipc::open_pool;
    zeEventPoolCloseIpcHandle => event::ipc::close_pool;
    zeEventPoolPutIpcHandle(context: ze_context_handle_t, handle: ze_ipc_event_pool_handle_t) => event::ipc::put_pool;
    zeEventPoolGetContextHandle(
        pool: ze_event_pool_handle_t,
        context: *mut ze_context_handle_t,
    ) => event::context_handle;
    zeEventPoolGetFlags(pool: ze_event_pool_handle_t, flags: *mut u32) => event::creation_flags;

    zeFenceCreate => queue::create_fence;
    zeFenceDestroy => fence::destroy;
    zeFenceHostSynchronize => fence::host_synchronize;
    zeFenceQueryStatus => fence::query_status;
    zeFenceReset => fence::reset;
}
