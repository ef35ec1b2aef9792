//! Queues, lists, fences and events.

use std::ffi::c_void;
use std::ptr;

use level_zero_sys::extensions::{
    ze_event_counter_based_desc_t, ze_event_query_kernel_timestamps_results_ext_properties_t,
    ze_group_size_t, ze_ipc_event_counter_based_handle_t, ze_mutable_command_id_exp_desc_t,
    ze_mutable_commands_exp_desc_t,
};
use level_zero_sys::*;

use super::ddi;
use crate::command_list::{self as list, Events, RegionArgument};
use crate::images::Pitches;
use crate::queue::{self, fence};
use crate::{event, images, launch};

ddi! {
    zeGetCommandQueueProcAddrTable {
        0 zeCommandQueueCreate(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_command_queue_desc_t,
            queue: *mut ze_command_queue_handle_t,
        ) => queue::create;
        0 zeCommandQueueDestroy(queue: ze_command_queue_handle_t) => queue::destroy;
        0 zeCommandQueueExecuteCommandLists(
            queue: ze_command_queue_handle_t,
            count: u32,
            lists: *mut ze_command_list_handle_t,
            fence: ze_fence_handle_t,
        ) => queue::execute;
        0 zeCommandQueueSynchronize(queue: ze_command_queue_handle_t, timeout: u64) => queue::synchronize;
        9 zeCommandQueueGetOrdinal(queue: ze_command_queue_handle_t, ordinal: *mut u32) => queue::ordinal;
        9 zeCommandQueueGetIndex(queue: ze_command_queue_handle_t, index: *mut u32) => queue::index;
        17 zeCommandQueueGetFlags(queue: ze_command_queue_handle_t, flags: *mut u32) => queue::creation_flags;
        17 zeCommandQueueGetMode(queue: ze_command_queue_handle_t, mode: *mut ze_command_queue_mode_t) => queue::mode;
        17 zeCommandQueueGetPriority(
            queue: ze_command_queue_handle_t,
            priority: *mut ze_command_queue_priority_t,
        ) => queue::priority;
    }
    zeGetCommandListProcAddrTable {
        0 zeCommandListCreate(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_command_list_desc_t,
            list: *mut ze_command_list_handle_t,
        ) => list::create;
        0 zeCommandListCreateImmediate(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_command_queue_desc_t,
            list: *mut ze_command_list_handle_t,
        ) => list::create_immediate;
        0 zeCommandListDestroy(list: ze_command_list_handle_t) => list::destroy;
        0 zeCommandListClose(list: ze_command_list_handle_t) => list::close;
        0 zeCommandListReset(list: ze_command_list_handle_t) => list::reset;
        0 zeCommandListAppendWriteGlobalTimestamp(
            list: ze_command_list_handle_t,
            to: *mut u64; events
        ) => list::append_timestamp;
        0 zeCommandListAppendBarrier(list: ze_command_list_handle_t; events) => list::append_barrier;
        0 zeCommandListAppendMemoryRangesBarrier(
            list: ze_command_list_handle_t,
            ranges: u32,
            sizes: *const usize,
            starts: *mut *const c_void; events
        ) => list::append_ranges_barrier;
        0 zeCommandListAppendMemoryCopy(
            list: ze_command_list_handle_t,
            to: *mut c_void,
            from: *const c_void,
            size: usize; events
        ) => list::append_copy;
        0 zeCommandListAppendMemoryFill(
            list: ze_command_list_handle_t,
            to: *mut c_void,
            pattern: *const c_void,
            pattern_size: usize,
            size: usize; events
        ) => list::append_fill;
        0 zeCommandListAppendMemoryCopyRegion(
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
            list,
            RegionArgument { base: to, region: to_region, pitch: to_pitch, slice_pitch: to_slice_pitch },
            RegionArgument { base: from, region: from_region, pitch: from_pitch, slice_pitch: from_slice_pitch },
            Events { signal, count, waits },
        );
        0 zeCommandListAppendMemoryCopyFromContext(
            list: ze_command_list_handle_t,
            to: *mut c_void,
            source: ze_context_handle_t,
            from: *const c_void,
            size: usize; events
        ) => list::append_copy_from_context;
        0 zeCommandListAppendImageCopy(
            list: ze_command_list_handle_t,
            to: ze_image_handle_t,
            from: ze_image_handle_t; events
        ) => images::append_copy;
        0 zeCommandListAppendImageCopyRegion(
            list: ze_command_list_handle_t,
            to: ze_image_handle_t,
            from: ze_image_handle_t,
            to_region: *const ze_image_region_t,
            from_region: *const ze_image_region_t; events
        ) => images::append_copy_region;
        0 zeCommandListAppendImageCopyToMemory(
            list: ze_command_list_handle_t,
            to: *mut c_void,
            from: ze_image_handle_t,
            region: *const ze_image_region_t,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = images::append_copy_to_memory(
            list, to, from, region, Pitches::default(), Events { signal, count, waits },
        );
        0 zeCommandListAppendImageCopyFromMemory(
            list: ze_command_list_handle_t,
            to: ze_image_handle_t,
            from: *const c_void,
            region: *const ze_image_region_t,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = images::append_copy_from_memory(
            list, to, from, region, Pitches::default(), Events { signal, count, waits },
        );
        0 zeCommandListAppendMemoryPrefetch(
            list: ze_command_list_handle_t,
            pointer: *const c_void,
            size: usize,
        ) => list::append_prefetch;
        0 zeCommandListAppendMemAdvise(
            list: ze_command_list_handle_t,
            device: ze_device_handle_t,
            pointer: *const c_void,
            size: usize,
            advice: ze_memory_advice_t,
        ) => list::append_advice;
        0 zeCommandListAppendSignalEvent(
            list: ze_command_list_handle_t,
            event: ze_event_handle_t,
        ) => list::append_signal;
        0 zeCommandListAppendWaitOnEvents(
            list: ze_command_list_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) => list::append_wait;
        0 zeCommandListAppendEventReset(list: ze_command_list_handle_t, event: ze_event_handle_t) => list::append_reset;
        0 zeCommandListAppendQueryKernelTimestamps(
            list: ze_command_list_handle_t,
            queried: u32,
            events: *mut ze_event_handle_t,
            to: *mut c_void,
            offsets: *const usize; events
        ) => list::append_query_timestamps;
        0 zeCommandListAppendLaunchKernel(
            list: ze_command_list_handle_t,
            kernel: ze_kernel_handle_t,
            groups: *const ze_group_count_t,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = launch::append(list, kernel, groups, ptr::null(), Events { signal, count, waits });
        0 zeCommandListAppendLaunchCooperativeKernel(
            list: ze_command_list_handle_t,
            kernel: ze_kernel_handle_t,
            groups: *const ze_group_count_t; events
        ) => launch::append_cooperative;
        0 zeCommandListAppendLaunchKernelIndirect(
            list: ze_command_list_handle_t,
            kernel: ze_kernel_handle_t,
            groups: *const ze_group_count_t; events
        ) => launch::append_indirect;
        0 zeCommandListAppendLaunchMultipleKernelsIndirect(
            list: ze_command_list_handle_t,
            most: u32,
            kernels: *const ze_kernel_handle_t,
            launches: *const u32,
            groups: *const ze_group_count_t; events
        ) => launch::append_multiple_indirect;
        3 zeCommandListAppendImageCopyToMemoryExt(
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
            list, to, from, region, Pitches { row, slice }, Events { signal, count, waits },
        );
        3 zeCommandListAppendImageCopyFromMemoryExt(
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
            list, to, from, region, Pitches { row, slice }, Events { signal, count, waits },
        );
        6 zeCommandListHostSynchronize(list: ze_command_list_handle_t, timeout: u64) => list::host_synchronize;
        9 zeCommandListGetDeviceHandle(
            list: ze_command_list_handle_t,
            device: *mut ze_device_handle_t,
        ) => list::device_handle;
        9 zeCommandListGetContextHandle(
            list: ze_command_list_handle_t,
            context: *mut ze_context_handle_t,
        ) => list::context_handle;
        9 zeCommandListGetOrdinal(list: ze_command_list_handle_t, ordinal: *mut u32) => list::ordinal;
        9 zeCommandListImmediateGetIndex(list: ze_command_list_handle_t, index: *mut u32) => list::index;
        9 zeCommandListIsImmediate(list: ze_command_list_handle_t, value: *mut ze_bool_t) => list::is_immediate;
        12 zeCommandListAppendSignalExternalSemaphoreExt;
        12 zeCommandListAppendWaitExternalSemaphoreExt;
        14 zeCommandListAppendLaunchKernelWithParameters(
            list: ze_command_list_handle_t,
            kernel: ze_kernel_handle_t,
            groups: *const ze_group_count_t,
            next: *const c_void; events
        ) => launch::append;
        14 zeCommandListAppendLaunchKernelWithArguments(
            list: ze_command_list_handle_t,
            kernel: ze_kernel_handle_t,
            groups: ze_group_count_t,
            group: ze_group_size_t,
            arguments: *const *const c_void,
            next: *const c_void; events
        ) => launch::append_with_arguments;
        16 zeCommandListAppendMemoryCopyWithParameters;
        16 zeCommandListAppendMemoryFillWithParameters;
        16 zeCommandListImmediateAppendCommandListsWithParameters;
        17 zeCommandListGetFlags(list: ze_command_list_handle_t, flags: *mut u32) => list::creation_flags;
        17 zeCommandListImmediateGetFlags(list: ze_command_list_handle_t, flags: *mut u32) => list::queue_flags;
        17 zeCommandListImmediateGetMode(
            list: ze_command_list_handle_t,
            mode: *mut ze_command_queue_mode_t,
        ) => list::mode;
        17 zeCommandListImmediateGetPriority(
            list: ze_command_list_handle_t,
            priority: *mut ze_command_queue_priority_t,
        ) => list::priority;
        17 zeCommandListBeginGraphCaptureExt;
        17 zeCommandListBeginCaptureIntoGraphExt;
        17 zeCommandListIsGraphCaptureEnabledExt;
        17 zeCommandListEndGraphCaptureExt;
        17 zeCommandListGetGraphExt;
        17 zeCommandListAppendGraphExt;
        17 zeCommandListAppendHostFunction;
    }
    zeGetCommandListExpProcAddrTable {
        9 zeCommandListCreateCloneExp;
        9 zeCommandListImmediateAppendCommandListsExp(
            list: ze_command_list_handle_t,
            lists_count: u32,
            lists: *mut ze_command_list_handle_t; events
        ) => list::append_lists;
        9 zeCommandListGetNextCommandIdExp(
            list: ze_command_list_handle_t,
            desc: *const ze_mutable_command_id_exp_desc_t,
            id: *mut u64,
        ) => list::next_command_id;
        9 zeCommandListUpdateMutableCommandsExp(
            list: ze_command_list_handle_t,
            desc: *const ze_mutable_commands_exp_desc_t,
        ) => launch::update;
        9 zeCommandListUpdateMutableCommandSignalEventExp(
            list: ze_command_list_handle_t,
            id: u64,
            signal: ze_event_handle_t,
        ) => list::update_signal;
        9 zeCommandListUpdateMutableCommandWaitEventsExp(
            list: ze_command_list_handle_t,
            id: u64,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) => list::update_waits;
        10 zeCommandListGetNextCommandIdWithKernelsExp(
            list: ze_command_list_handle_t,
            desc: *const ze_mutable_command_id_exp_desc_t,
            _count: u32,
            _kernels: *mut ze_kernel_handle_t,
            id: *mut u64,
        ) = list::next_command_id(list, desc, id);
        10 zeCommandListUpdateMutableCommandKernelsExp(
            list: ze_command_list_handle_t,
            count: u32,
            ids: *mut u64,
            kernels: *mut ze_kernel_handle_t,
        ) => launch::update_kernels;
        17 zeCommandListIsMutableExp(
            list: ze_command_list_handle_t,
            value: *mut ze_bool_t,
        ) => list::is_mutable_list;
    }
    zeGetEventProcAddrTable {
        0 zeEventCreate(
            pool: ze_event_pool_handle_t,
            desc: *const ze_event_desc_t,
            event: *mut ze_event_handle_t,
        ) => event::create;
        0 zeEventDestroy(event: ze_event_handle_t) => event::destroy;
        0 zeEventHostSignal(event: ze_event_handle_t) => event::host_signal;
        0 zeEventHostSynchronize(event: ze_event_handle_t, timeout: u64) => event::host_synchronize;
        0 zeEventQueryStatus(event: ze_event_handle_t) => event::query_status;
        0 zeEventHostReset(event: ze_event_handle_t) => event::host_reset;
        0 zeEventQueryKernelTimestamp(
            event: ze_event_handle_t,
            result: *mut ze_kernel_timestamp_result_t,
        ) => event::query_kernel_timestamp;
        6 zeEventQueryKernelTimestampsExt(
            event: ze_event_handle_t,
            device: ze_device_handle_t,
            count: *mut u32,
            results: *mut ze_event_query_kernel_timestamps_results_ext_properties_t,
        ) => event::query_kernel_timestamps;
        9 zeEventGetEventPool(event: ze_event_handle_t, pool: *mut ze_event_pool_handle_t) => event::event_pool;
        9 zeEventGetSignalScope(event: ze_event_handle_t, scope: *mut u32) => event::signal_scope;
        9 zeEventGetWaitScope(event: ze_event_handle_t, scope: *mut u32) => event::wait_scope;
        15 zeEventCounterBasedCreate(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_event_counter_based_desc_t,
            event: *mut ze_event_handle_t,
        ) => event::create_counter_based;
        15 zeEventCounterBasedGetIpcHandle(
            event: ze_event_handle_t,
            handle: *mut ze_ipc_event_counter_based_handle_t,
        ) => event::ipc::counter_handle;
        15 zeEventCounterBasedOpenIpcHandle(
            context: ze_context_handle_t,
            handle: ze_ipc_event_counter_based_handle_t,
            event: *mut ze_event_handle_t,
        ) = event::ipc::open_counter(context, &handle, event);
        15 zeEventCounterBasedCloseIpcHandle(event: ze_event_handle_t) => event::ipc::close_counter;
        15 zeEventCounterBasedGetDeviceAddress;
        17 zeEventGetCounterBasedFlags(event: ze_event_handle_t, flags: *mut u32) => event::counter_based_flags;
    }
    zeGetEventExpProcAddrTable {
        2 zeEventQueryTimestampsExp(
            event: ze_event_handle_t,
            device: ze_device_handle_t,
            count: *mut u32,
            results: *mut ze_kernel_timestamp_result_t,
        ) => event::query_timestamps;
    }
    zeGetEventPoolProcAddrTable {
        0 zeEventPoolCreate(
            context: ze_context_handle_t,
            desc: *const ze_event_pool_desc_t,
            count: u32,
            devices: *mut ze_device_handle_t,
            pool: *mut ze_event_pool_handle_t,
        ) => event::create_pool;
        0 zeEventPoolDestroy(pool: ze_event_pool_handle_t) => event::destroy_pool;
        0 zeEventPoolGetIpcHandle(
            pool: ze_event_pool_handle_t,
            handle: *mut ze_ipc_event_pool_handle_t,
        ) => event::ipc::pool_handle;
        0 zeEventPoolOpenIpcHandle(
            context: ze_context_handle_t,
            handle: ze_ipc_event_pool_handle_t,
            pool: *mut ze_event_pool_handle_t,
        ) = event::ipc::open_pool(context, &handle, pool);
        0 zeEventPoolCloseIpcHandle(pool: ze_event_pool_handle_t) => event::ipc::close_pool;
        6 zeEventPoolPutIpcHandle(context: ze_context_handle_t, handle: ze_ipc_event_pool_handle_t)
            = event::ipc::put_pool(context, &handle);
        9 zeEventPoolGetContextHandle(
            pool: ze_event_pool_handle_t,
            context: *mut ze_context_handle_t,
        ) => event::context_handle;
        9 zeEventPoolGetFlags(pool: ze_event_pool_handle_t, flags: *mut u32) => event::creation_flags;
    }
    zeGetFenceProcAddrTable {
        0 zeFenceCreate(
            queue: ze_command_queue_handle_t,
            desc: *const ze_fence_desc_t,
            fence: *mut ze_fence_handle_t,
        ) => queue::create_fence;
        0 zeFenceDestroy(fence: ze_fence_handle_t) => fence::destroy;
        0 zeFenceHostSynchronize(fence: ze_fence_handle_t, timeout: u64) => fence::host_synchronize;
        0 zeFenceQueryStatus(fence: ze_fence_handle_t) => fence::query_status;
        0 zeFenceReset(fence: ze_fence_handle_t) => fence::reset;
    }
    zeGetExecutableGraphProcAddrTable {
        17 zeExecutableGraphGetSourceGraphExt;
        17 zeExecutableGraphDestroyExt;
    }
    zeGetGraphProcAddrTable {
        17 zeGraphCreateExt;
        17 zeGraphGetPrimaryCommandListExt;
        17 zeGraphSetDestructionCallbackExt;
        17 zeGraphInstantiateExt;
        17 zeGraphIsEmptyExt;
        17 zeGraphDumpContentsExt;
        17 zeGraphDestroyExt;
    }
}
