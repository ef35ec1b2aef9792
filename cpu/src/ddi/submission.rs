//! Queues, lists, fences and events.

use std::ffi::{c_char, c_void};

use level_zero_sys::extensions::{
    _ze_executable_graph_handle_t, _ze_graph_handle_t, ze_event_counter_based_desc_t,
    ze_event_query_kernel_timestamps_results_ext_properties_t, ze_group_size_t,
    ze_host_function_callback_t, ze_mutable_command_id_exp_desc_t, ze_mutable_commands_exp_desc_t,
    zex_mem_graph_free_callback_fn_t,
};
use level_zero_sys::*;

use crate::abi::entry::check;
use crate::command_list::graph::{self, ExecutableGraph};
use crate::command_list::{self as list, CommandList, RegionArgument};
use crate::ddi::declare::functions;
use crate::event::{self, Event, EventPool};
use crate::handle::destroy;
use crate::queue::fence::{self, Fence};
use crate::queue::{self, Queue};
use crate::{images, launch};

functions! {
    zeCommandQueueCreate => queue::create;
    zeCommandQueueDestroy => destroy::<Queue>;
    zeCommandQueueExecuteCommandLists => queue::execute;
    zeCommandQueueSynchronize => queue::synchronize;
    zeDeviceSynchronize => queue::synchronize_device;
    zeCommandQueueGetOrdinal => queue::ordinal;
    zeCommandQueueGetIndex => queue::index;
    zeCommandQueueGetFlags => queue::creation_flags;
    zeCommandQueueGetMode => queue::mode;
    zeCommandQueueGetPriority => queue::priority;

    zeCommandListCreate => list::create;
    zeCommandListCreateImmediate => list::create_immediate;
    zeCommandListDestroy => destroy::<CommandList>;
    zeCommandListClose => list::close;
    zeCommandListReset => list::reset;
    zeCommandListAppendWriteGlobalTimestamp => list::append_timestamp;
    zeCommandListAppendBarrier => list::append_barrier;
    zeCommandListAppendMemoryRangesBarrier => list::append_ranges_barrier;
    zeCommandListAppendMemoryCopy => list::append_copy;
    zeCommandListAppendMemoryFill => list::append_fill;
    zeCommandListAppendMemoryCopyWithParameters => list::append_copy_with_parameters;
    zeCommandListAppendMemoryFillWithParameters => list::append_fill_with_parameters;
    zeCommandListAppendHostFunction => list::append_host_function;
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
        check((signal, count, waits))?,
    );
    zeCommandListAppendMemoryCopyFromContext => list::append_copy_from_context;
    zeCommandListAppendImageCopy => images::append_copy;
    zeCommandListAppendImageCopyRegion => images::append_copy_region;
    zeCommandListAppendImageCopyToMemory => images::append_copy_to_memory;
    zeCommandListAppendImageCopyFromMemory => images::append_copy_from_memory;
    zeCommandListAppendMemoryPrefetch => list::append_prefetch;
    zeCommandListAppendMemAdvise => list::append_advice;
    zeCommandListAppendSignalEvent => list::append_signal;
    zeCommandListAppendWaitOnEvents => list::append_wait;
    zeCommandListAppendEventReset => list::append_reset;
    zeCommandListAppendQueryKernelTimestamps => list::append_query_timestamps;
    zeCommandListAppendLaunchKernel => launch::append;
    zeCommandListAppendLaunchCooperativeKernel => launch::append_cooperative;
    zeCommandListAppendLaunchKernelIndirect => launch::append_indirect;
    zeCommandListAppendLaunchMultipleKernelsIndirect => launch::append_multiple_indirect;
    zeCommandListAppendImageCopyToMemoryExt => images::append_pitched_copy_to_memory;
    zeCommandListAppendImageCopyFromMemoryExt => images::append_pitched_copy_from_memory;
    zeCommandListHostSynchronize => list::host_synchronize;
    zeCommandListGetDeviceHandle => list::device_handle;
    zeCommandListGetContextHandle => list::context_handle;
    zeCommandListGetOrdinal => list::ordinal;
    zeCommandListImmediateGetIndex => list::index;
    zeCommandListIsImmediate => list::is_immediate;
    zeCommandListAppendLaunchKernelWithParameters => launch::append_with_parameters;
    zeCommandListAppendLaunchKernelWithArguments => launch::append_with_arguments;
    zeCommandListGetFlags => list::creation_flags;
    zeCommandListImmediateGetFlags => list::queue_flags;
    zeCommandListImmediateGetMode => list::mode;
    zeCommandListImmediateGetPriority => list::priority;

    zeCommandListImmediateAppendCommandListsExp => list::append_lists;
    zeCommandListImmediateAppendCommandListsWithParameters => list::append_lists_with_parameters;
    zeCommandListGetNextCommandIdExp => list::next_command_id;
    zeCommandListUpdateMutableCommandsExp => launch::update;
    zeCommandListUpdateMutableCommandSignalEventExp => list::update_signal;
    zeCommandListUpdateMutableCommandWaitEventsExp => list::update_waits;
    zeCommandListGetNextCommandIdWithKernelsExp(
        list: ze_command_list_handle_t,
        desc: *const ze_mutable_command_id_exp_desc_t,
        _count: u32,
        _kernels: *mut ze_kernel_handle_t,
        id: *mut u64,
    ) = list::next_command_id(check(list)?, check(desc)?, check(id)?);
    zeCommandListUpdateMutableCommandKernelsExp => launch::update_kernels;
    zeCommandListIsMutableExp => list::is_mutable_list;

    zeGraphCreateExt => graph::create;
    zeGraphDestroyExt => graph::destroy;
    zeGraphGetPrimaryCommandListExt => graph::primary;
    zeGraphSetDestructionCallbackExt => graph::add_callback;
    zeGraphIsEmptyExt => graph::is_empty;
    zeGraphDumpContentsExt => graph::dump;
    zeGraphInstantiateExt => graph::instantiate;
    zeCommandListBeginGraphCaptureExt => graph::begin;
    zeCommandListBeginCaptureIntoGraphExt => graph::begin_into;
    zeCommandListIsGraphCaptureEnabledExt => graph::is_capturing;
    zeCommandListEndGraphCaptureExt => graph::end;
    zeCommandListGetGraphExt => graph::graph_of;
    zeCommandListAppendGraphExt => graph::append;
    zeExecutableGraphGetSourceGraphExt => graph::source;
    zeExecutableGraphDestroyExt => destroy::<ExecutableGraph>;

    zeEventCreate => event::create;
    zeEventDestroy => destroy::<Event>;
    zeEventHostSignal => event::host_signal;
    zeEventHostSynchronize => event::host_synchronize;
    zeEventQueryStatus => event::query_status;
    zeEventHostReset => event::host_reset;
    zeEventQueryKernelTimestamp => event::query_kernel_timestamp;
    zeEventQueryKernelTimestampsExt => event::query_kernel_timestamps;
    zeEventGetEventPool => event::event_pool;
    zeEventGetSignalScope => event::signal_scope;
    zeEventGetWaitScope => event::wait_scope;
    zeEventCounterBasedCreate => event::create_counter_based;
    zeEventGetCounterBasedFlags => event::counter_based_flags;

    zeEventQueryTimestampsExp => event::query_timestamps;

    zeEventPoolCreate => event::create_pool;
    zeEventPoolDestroy => destroy::<EventPool>;
    zeEventPoolGetContextHandle => event::context_handle;
    zeEventPoolGetFlags => event::creation_flags;

    zeFenceCreate => queue::create_fence;
    zeFenceDestroy => destroy::<Fence>;
    zeFenceHostSynchronize => fence::host_synchronize;
    zeFenceQueryStatus => fence::query_status;
    zeFenceReset => fence::reset;
}
