//! Queues, lists, fences and events.

use std::ffi::c_void;
use std::ptr;

use level_zero_sys::extensions::{
    ze_event_counter_based_desc_t, ze_event_query_kernel_timestamps_results_ext_properties_t,
    ze_group_size_t,
};
use level_zero_sys::*;

use super::ddi;
use crate::command_list::{self as list, Events, Side};
use crate::queue::{self, fence};
use crate::{event, launch};

ddi! {
    zeGetCommandQueueProcAddrTable {
        0 zeCommandQueueCreate(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_command_queue_desc_t,
            queue: *mut ze_command_queue_handle_t,
        ) = queue::create(context, device, desc, queue);
        0 zeCommandQueueDestroy(queue: ze_command_queue_handle_t) = queue::destroy(queue);
        0 zeCommandQueueExecuteCommandLists(
            queue: ze_command_queue_handle_t,
            count: u32,
            lists: *mut ze_command_list_handle_t,
            fence: ze_fence_handle_t,
        ) = queue::execute(queue, count, lists, fence);
        0 zeCommandQueueSynchronize(queue: ze_command_queue_handle_t, timeout: u64)
            = queue::synchronize(queue, timeout);
        9 zeCommandQueueGetOrdinal(queue: ze_command_queue_handle_t, ordinal: *mut u32)
            = queue::ordinal(queue, ordinal);
        9 zeCommandQueueGetIndex(queue: ze_command_queue_handle_t, index: *mut u32)
            = queue::index(queue, index);
        17 zeCommandQueueGetFlags(queue: ze_command_queue_handle_t, flags: *mut u32)
            = queue::creation_flags(queue, flags);
        17 zeCommandQueueGetMode(queue: ze_command_queue_handle_t, mode: *mut ze_command_queue_mode_t)
            = queue::mode(queue, mode);
        17 zeCommandQueueGetPriority(
            queue: ze_command_queue_handle_t,
            priority: *mut ze_command_queue_priority_t,
        ) = queue::priority(queue, priority);
    }
    zeGetCommandListProcAddrTable {
        0 zeCommandListCreate(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_command_list_desc_t,
            list: *mut ze_command_list_handle_t,
        ) = list::create(context, device, desc, list);
        0 zeCommandListCreateImmediate(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_command_queue_desc_t,
            list: *mut ze_command_list_handle_t,
        ) = list::create_immediate(context, device, desc, list);
        0 zeCommandListDestroy(list: ze_command_list_handle_t) = list::destroy(list);
        0 zeCommandListClose(list: ze_command_list_handle_t) = list::close(list);
        0 zeCommandListReset(list: ze_command_list_handle_t) = list::reset(list);
        0 zeCommandListAppendWriteGlobalTimestamp(
            list: ze_command_list_handle_t,
            to: *mut u64,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = list::append_timestamp(list, to, Events { signal, count, waits });
        0 zeCommandListAppendBarrier(
            list: ze_command_list_handle_t,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = list::append_barrier(list, Events { signal, count, waits });
        0 zeCommandListAppendMemoryRangesBarrier(
            list: ze_command_list_handle_t,
            ranges: u32,
            sizes: *const usize,
            starts: *mut *const c_void,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = list::append_ranges_barrier(list, ranges, sizes, starts, Events { signal, count, waits });
        0 zeCommandListAppendMemoryCopy(
            list: ze_command_list_handle_t,
            to: *mut c_void,
            from: *const c_void,
            size: usize,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = list::append_copy(list, to, from, size, Events { signal, count, waits });
        0 zeCommandListAppendMemoryFill(
            list: ze_command_list_handle_t,
            to: *mut c_void,
            pattern: *const c_void,
            pattern_size: usize,
            size: usize,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = list::append_fill(list, to, pattern, pattern_size, size, Events { signal, count, waits });
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
            Side { base: to, region: to_region, pitch: to_pitch, slice_pitch: to_slice_pitch },
            Side { base: from, region: from_region, pitch: from_pitch, slice_pitch: from_slice_pitch },
            Events { signal, count, waits },
        );
        0 zeCommandListAppendMemoryCopyFromContext(
            list: ze_command_list_handle_t,
            to: *mut c_void,
            source: ze_context_handle_t,
            from: *const c_void,
            size: usize,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = list::append_copy_from_context(list, to, source, from, size, Events { signal, count, waits });
        0 zeCommandListAppendImageCopy;
        0 zeCommandListAppendImageCopyRegion;
        0 zeCommandListAppendImageCopyToMemory;
        0 zeCommandListAppendImageCopyFromMemory;
        0 zeCommandListAppendMemoryPrefetch(
            list: ze_command_list_handle_t,
            pointer: *const c_void,
            size: usize,
        ) = list::append_prefetch(list, pointer, size);
        0 zeCommandListAppendMemAdvise(
            list: ze_command_list_handle_t,
            device: ze_device_handle_t,
            pointer: *const c_void,
            size: usize,
            advice: ze_memory_advice_t,
        ) = list::append_advice(list, device, pointer, size, advice);
        0 zeCommandListAppendSignalEvent(list: ze_command_list_handle_t, event: ze_event_handle_t)
            = list::append_signal(list, event);
        0 zeCommandListAppendWaitOnEvents(
            list: ze_command_list_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = list::append_wait(list, count, waits);
        0 zeCommandListAppendEventReset(list: ze_command_list_handle_t, event: ze_event_handle_t)
            = list::append_reset(list, event);
        0 zeCommandListAppendQueryKernelTimestamps(
            list: ze_command_list_handle_t,
            queried: u32,
            events: *mut ze_event_handle_t,
            to: *mut c_void,
            offsets: *const usize,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = list::append_query_timestamps(
            list, queried, events, to, offsets, Events { signal, count, waits },
        );
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
            groups: *const ze_group_count_t,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = launch::append_cooperative(list, kernel, groups, Events { signal, count, waits });
        0 zeCommandListAppendLaunchKernelIndirect(
            list: ze_command_list_handle_t,
            kernel: ze_kernel_handle_t,
            groups: *const ze_group_count_t,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = launch::append_indirect(list, kernel, groups, Events { signal, count, waits });
        0 zeCommandListAppendLaunchMultipleKernelsIndirect(
            list: ze_command_list_handle_t,
            most: u32,
            kernels: *const ze_kernel_handle_t,
            launches: *const u32,
            groups: *const ze_group_count_t,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = launch::append_multiple_indirect(
            list, most, kernels, launches, groups, Events { signal, count, waits },
        );
        3 zeCommandListAppendImageCopyToMemoryExt;
        3 zeCommandListAppendImageCopyFromMemoryExt;
        6 zeCommandListHostSynchronize(list: ze_command_list_handle_t, timeout: u64)
            = list::host_synchronize(list, timeout);
        9 zeCommandListGetDeviceHandle(list: ze_command_list_handle_t, device: *mut ze_device_handle_t)
            = list::device_handle(list, device);
        9 zeCommandListGetContextHandle(
            list: ze_command_list_handle_t,
            context: *mut ze_context_handle_t,
        ) = list::context_handle(list, context);
        9 zeCommandListGetOrdinal(list: ze_command_list_handle_t, ordinal: *mut u32)
            = list::ordinal(list, ordinal);
        9 zeCommandListImmediateGetIndex(list: ze_command_list_handle_t, index: *mut u32)
            = list::index(list, index);
        9 zeCommandListIsImmediate(list: ze_command_list_handle_t, value: *mut ze_bool_t)
            = list::is_immediate(list, value);
        12 zeCommandListAppendSignalExternalSemaphoreExt;
        12 zeCommandListAppendWaitExternalSemaphoreExt;
        14 zeCommandListAppendLaunchKernelWithParameters(
            list: ze_command_list_handle_t,
            kernel: ze_kernel_handle_t,
            groups: *const ze_group_count_t,
            next: *const c_void,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = launch::append(list, kernel, groups, next, Events { signal, count, waits });
        14 zeCommandListAppendLaunchKernelWithArguments(
            list: ze_command_list_handle_t,
            kernel: ze_kernel_handle_t,
            groups: ze_group_count_t,
            group: ze_group_size_t,
            arguments: *const *const c_void,
            next: *const c_void,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = launch::append_with_arguments(
            list, kernel, groups, group, arguments, next, Events { signal, count, waits },
        );
        16 zeCommandListAppendMemoryCopyWithParameters;
        16 zeCommandListAppendMemoryFillWithParameters;
        16 zeCommandListImmediateAppendCommandListsWithParameters;
        17 zeCommandListGetFlags(list: ze_command_list_handle_t, flags: *mut u32)
            = list::creation_flags(list, flags);
        17 zeCommandListImmediateGetFlags(list: ze_command_list_handle_t, flags: *mut u32)
            = list::queue_flags(list, flags);
        17 zeCommandListImmediateGetMode(
            list: ze_command_list_handle_t,
            mode: *mut ze_command_queue_mode_t,
        ) = list::mode(list, mode);
        17 zeCommandListImmediateGetPriority(
            list: ze_command_list_handle_t,
            priority: *mut ze_command_queue_priority_t,
        ) = list::priority(list, priority);
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
            lists: *mut ze_command_list_handle_t,
            signal: ze_event_handle_t,
            count: u32,
            waits: *mut ze_event_handle_t,
        ) = list::append_lists(list, lists_count, lists, Events { signal, count, waits });
        9 zeCommandListGetNextCommandIdExp;
        9 zeCommandListUpdateMutableCommandsExp;
        9 zeCommandListUpdateMutableCommandSignalEventExp;
        9 zeCommandListUpdateMutableCommandWaitEventsExp;
        10 zeCommandListGetNextCommandIdWithKernelsExp;
        10 zeCommandListUpdateMutableCommandKernelsExp;
        17 zeCommandListIsMutableExp;
    }
    zeGetEventProcAddrTable {
        0 zeEventCreate(
            pool: ze_event_pool_handle_t,
            desc: *const ze_event_desc_t,
            event: *mut ze_event_handle_t,
        ) = event::create(pool, desc, event);
        0 zeEventDestroy(event: ze_event_handle_t) = event::destroy(event);
        0 zeEventHostSignal(event: ze_event_handle_t) = event::host_signal(event);
        0 zeEventHostSynchronize(event: ze_event_handle_t, timeout: u64)
            = event::host_synchronize(event, timeout);
        0 zeEventQueryStatus(event: ze_event_handle_t) = event::query_status(event);
        0 zeEventHostReset(event: ze_event_handle_t) = event::host_reset(event);
        0 zeEventQueryKernelTimestamp(
            event: ze_event_handle_t,
            result: *mut ze_kernel_timestamp_result_t,
        ) = event::query_kernel_timestamp(event, result);
        6 zeEventQueryKernelTimestampsExt(
            event: ze_event_handle_t,
            device: ze_device_handle_t,
            count: *mut u32,
            results: *mut ze_event_query_kernel_timestamps_results_ext_properties_t,
        ) = event::query_kernel_timestamps(event, device, count, results);
        9 zeEventGetEventPool(event: ze_event_handle_t, pool: *mut ze_event_pool_handle_t)
            = event::event_pool(event, pool);
        9 zeEventGetSignalScope(event: ze_event_handle_t, scope: *mut u32)
            = event::signal_scope(event, scope);
        9 zeEventGetWaitScope(event: ze_event_handle_t, scope: *mut u32)
            = event::wait_scope(event, scope);
        15 zeEventCounterBasedCreate(
            context: ze_context_handle_t,
            device: ze_device_handle_t,
            desc: *const ze_event_counter_based_desc_t,
            event: *mut ze_event_handle_t,
        ) = event::create_counter_based(context, device, desc, event);
        15 zeEventCounterBasedGetIpcHandle;
        15 zeEventCounterBasedOpenIpcHandle;
        15 zeEventCounterBasedCloseIpcHandle;
        15 zeEventCounterBasedGetDeviceAddress;
        17 zeEventGetCounterBasedFlags(event: ze_event_handle_t, flags: *mut u32)
            = event::counter_based_flags(event, flags);
    }
    zeGetEventExpProcAddrTable {
        2 zeEventQueryTimestampsExp(
            event: ze_event_handle_t,
            device: ze_device_handle_t,
            count: *mut u32,
            results: *mut ze_kernel_timestamp_result_t,
        ) = event::query_timestamps(event, device, count, results);
    }
    zeGetEventPoolProcAddrTable {
        0 zeEventPoolCreate(
            context: ze_context_handle_t,
            desc: *const ze_event_pool_desc_t,
            count: u32,
            devices: *mut ze_device_handle_t,
            pool: *mut ze_event_pool_handle_t,
        ) = event::create_pool(context, desc, count, devices, pool);
        0 zeEventPoolDestroy(pool: ze_event_pool_handle_t) = event::destroy_pool(pool);
        0 zeEventPoolGetIpcHandle;
        0 zeEventPoolOpenIpcHandle;
        0 zeEventPoolCloseIpcHandle;
        6 zeEventPoolPutIpcHandle;
        9 zeEventPoolGetContextHandle(
            pool: ze_event_pool_handle_t,
            context: *mut ze_context_handle_t,
        ) = event::context_handle(pool, context);
        9 zeEventPoolGetFlags(pool: ze_event_pool_handle_t, flags: *mut u32)
            = event::creation_flags(pool, flags);
    }
    zeGetFenceProcAddrTable {
        0 zeFenceCreate(
            queue: ze_command_queue_handle_t,
            desc: *const ze_fence_desc_t,
            fence: *mut ze_fence_handle_t,
        ) = queue::create_fence(queue, desc, fence);
        0 zeFenceDestroy(fence: ze_fence_handle_t) = fence::destroy(fence);
        0 zeFenceHostSynchronize(fence: ze_fence_handle_t, timeout: u64)
            = fence::host_synchronize(fence, timeout);
        0 zeFenceQueryStatus(fence: ze_fence_handle_t) = fence::query_status(fence);
        0 zeFenceReset(fence: ze_fence_handle_t) = fence::reset(fence);
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
