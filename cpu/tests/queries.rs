//! Queries that answer with what an object was created with, and calls with little to do on a processor.
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;

use std::ffi::{CStr, c_void};
use std::fmt::Debug;
use std::ptr;

use common::{Context, Kind, List, OK, device};
use level_zero_sys as sys;
use level_zero_sys::extensions::{
    ze_device_cache_line_size_ext_t as CacheLine,
    ze_device_usablemem_size_ext_properties_t as Usable,
    ze_device_vector_width_properties_ext_t as Widths,
    ze_event_query_kernel_timestamps_results_ext_properties_t as Timestamps,
    ze_synchronized_timestamp_result_ext_t as Synchronized,
};

const INVALID: sys::ze_result_t = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
const SYNCHRONOUS: u32 = sys::ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS.0;

/// Checks the answer of a query of one value, unless a loader lacks it.
fn answers<H, T>(name: &CStr, handle: H, expected: Result<T, sys::ze_result_t>)
where
    T: Default + PartialEq + Debug,
{
    type Query<H, T> = unsafe extern "C" fn(H, *mut T) -> sys::ze_result_t;
    let Some(ask) = common::extension::<Query<H, T>>(name) else {
        return;
    };
    let mut value = T::default();
    let result = unsafe { ask(handle, &raw mut value) };
    let found = if result == OK { Ok(value) } else { Err(result) };
    assert_eq!(found, expected, "{name:?}");
}

/// A structure of zeros with its type.
fn filled<T: sys::Structure>() -> T {
    let mut made = unsafe { std::mem::zeroed::<T>() };
    unsafe {
        (&raw mut made)
            .cast::<sys::ze_structure_type_t>()
            .write(T::TYPES[0])
    };
    made
}

#[test]
fn lists_and_queues_know_what_they_were_created_with() {
    let context = Context::new();
    let order = |orders: &[u32]| *orders.last().unwrap();
    let (of_queues, of_lists) = (order(common::queue_orders()), order(common::list_orders()));
    let mut desc = common::queue_desc(of_queues);
    desc.mode = sys::ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
    let (regular, immediate) = (
        context.list(of_lists),
        context.immediate_on(device(), &desc),
    );
    for (list, is_immediate) in [(regular, 0u8), (immediate, 1)] {
        let own = context.0 as usize;
        answers(c"zeCommandListGetContextHandle", list, Ok(own));
        answers(c"zeCommandListGetDeviceHandle", list, Ok(device() as usize));
        answers(c"zeCommandListGetOrdinal", list, Ok(0u32));
        answers(c"zeCommandListIsImmediate", list, Ok(is_immediate));
    }
    answers(c"zeCommandListGetFlags", regular, Ok(of_lists));
    answers::<List, u32>(c"zeCommandListGetFlags", immediate, Err(INVALID));
    answers(c"zeCommandListImmediateGetIndex", immediate, Ok(0u32));
    answers(c"zeCommandListImmediateGetFlags", immediate, Ok(of_queues));
    answers(c"zeCommandListImmediateGetMode", immediate, Ok(SYNCHRONOUS));
    answers::<List, u32>(c"zeCommandListImmediateGetIndex", regular, Err(INVALID));
    let queue = context.queue_of(&desc);
    answers(c"zeCommandQueueGetOrdinal", queue, Ok(0u32));
    answers(c"zeCommandQueueGetIndex", queue, Ok(0u32));
    answers(c"zeCommandQueueGetFlags", queue, Ok(of_queues));
    answers(c"zeCommandQueueGetMode", queue, Ok(SYNCHRONOUS));
    ok!(zeCommandQueueDestroy(queue));
    common::destroy(regular);
    common::destroy(immediate);
}

#[test]
fn events_and_pools_know_what_they_were_created_with() {
    let context = Context::new();
    let pool = context.pool(1, true);
    let (event, scope) = (pool.events[0], sys::ZE_EVENT_SCOPE_FLAG_HOST.0);
    answers(c"zeEventGetEventPool", event, Ok(pool.pool as usize));
    answers(c"zeEventGetSignalScope", event, Ok(scope));
    answers(c"zeEventGetWaitScope", event, Ok(scope));
    answers(c"zeEventGetCounterBasedFlags", event, Ok(0u32));
    let own = context.0 as usize;
    answers(c"zeEventPoolGetContextHandle", pool.pool, Ok(own));
    let flags = sys::ZE_EVENT_POOL_FLAG_HOST_VISIBLE.0 | sys::ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP.0;
    answers(c"zeEventPoolGetFlags", pool.pool, Ok(flags));
}

fn timestamps(
    event: sys::ze_event_handle_t,
    room: u32,
) -> (
    sys::ze_result_t,
    u32,
    Option<sys::ze_kernel_timestamp_result_t>,
) {
    let (mut count, mut found) = (room, sys::ze_kernel_timestamp_result_t::default());
    let place = if room > 0 {
        &raw mut found
    } else {
        ptr::null_mut()
    };
    let result = ze!(zeEventQueryTimestampsExp(
        event,
        device(),
        &raw mut count,
        place
    ));
    (result, count, (room > 0).then_some(found))
}

#[test]
fn all_queries_of_a_commands_times_agree() {
    let context = Context::new();
    let pool = context.pool(2, true);
    let [event, unset] = pool.events[..] else {
        unreachable!()
    };
    let list = context.immediate(0);
    ok!(zeCommandListAppendBarrier(list, event, 0, ptr::null_mut()));
    common::wait(event);
    let mut own = sys::ze_kernel_timestamp_result_t::default();
    ok!(zeEventQueryKernelTimestamp(event, &raw mut own));
    let end = own.global.kernelEnd;
    assert!(end >= own.global.kernelStart && end > 0);
    let (result, count, _) = timestamps(event, 0);
    assert_eq!((result, count), (OK, 1));
    let (result, count, found) = timestamps(event, 5);
    assert_eq!((result, count), (OK, 1));
    assert_eq!(found.unwrap().global.kernelEnd, end);
    assert_eq!(timestamps(unset, 1).0, sys::ZE_RESULT_NOT_READY);
    type Ask = unsafe extern "C" fn(
        sys::ze_event_handle_t,
        sys::ze_device_handle_t,
        *mut u32,
        *mut Timestamps,
    ) -> sys::ze_result_t;
    let ask = common::extension::<Ask>(c"zeEventQueryKernelTimestampsExt");
    if let Some(ask) = ask {
        let (mut kernel, mut host, mut count) = (
            sys::ze_kernel_timestamp_result_t::default(),
            Synchronized::default(),
            0,
        );
        let mut places = Timestamps {
            pKernelTimestampsBuffer: &raw mut kernel,
            pSynchronizedTimestampsBuffer: &raw mut host,
            ..filled()
        };
        let result = unsafe { ask(event, device(), &raw mut count, ptr::null_mut()) };
        assert_eq!((result, count), (OK, 1));
        let result = unsafe { ask(event, device(), &raw mut count, &raw mut places) };
        assert_eq!((result, count), (OK, 1));
        assert_eq!(kernel.global.kernelEnd, end);
        assert_eq!(host.context.kernelEnd, end);
        (kernel, host) = Default::default();
        let mut neither = filled();
        let result = unsafe { ask(event, device(), &raw mut count, &raw mut neither) };
        assert_eq!((result, count), (OK, 1));
        assert_eq!(
            (kernel.global.kernelEnd, host.context.kernelEnd),
            (0, 0),
            "no place was named"
        );
    }
    common::destroy(list);
}

#[test]
fn caches_and_vectors_are_those_of_the_processor() {
    let mut count = 0;
    ok!(zeDeviceGetCacheProperties(
        device(),
        &raw mut count,
        ptr::null_mut()
    ));
    assert_eq!(count, 1);
    let mut line = filled::<CacheLine>();
    let mut cache = sys::ze_device_cache_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_CACHE_PROPERTIES,
        pNext: (&raw mut line).cast(),
        flags: u32::MAX,
        cacheSize: 1,
    };
    ok!(zeDeviceGetCacheProperties(
        device(),
        &raw mut count,
        &raw mut cache
    ));
    assert_eq!((cache.flags, cache.cacheSize % 1024), (0, 0));
    let told = "/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size";
    if let Ok(told) = std::fs::read_to_string(told) {
        assert_eq!(line.cacheLineSize, told.trim().parse::<usize>().unwrap());
    }
    type Ask =
        unsafe extern "C" fn(sys::ze_device_handle_t, *mut u32, *mut Widths) -> sys::ze_result_t;
    let ask = common::extension::<Ask>(c"zeDeviceGetVectorWidthPropertiesExt");
    if let Some(ask) = ask {
        let mut widths = filled::<Widths>();
        assert_eq!(
            unsafe { ask(device(), &raw mut count, &raw mut widths) },
            OK
        );
        let bytes = widths.vector_width_size;
        let mut none = 0;
        let result = unsafe { ask(device(), &raw mut none, ptr::null_mut()) };
        assert_eq!((result, none), (OK, 1));
        assert!([16, 32, 64].contains(&bytes), "{bytes}");
        assert_eq!(widths.native_vector_width_double, bytes / 8);
        assert_eq!(widths.preferred_vector_width_char, bytes);
    }
}

#[test]
fn there_are_execution_units_and_no_fabric() {
    let mut units = filled::<sys::ze_eu_count_ext_t>();
    let mut properties = sys::ze_device_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        pNext: (&raw mut units).cast(),
        ..Default::default()
    };
    ok!(zeDeviceGetProperties(device(), &raw mut properties));
    let all = properties.numSlices * properties.numSubslicesPerSlice * properties.numEUsPerSubslice;
    assert_eq!(units.numTotalEUs, all);
}

/// The device's usable memory, in bytes.
fn usable() -> usize {
    let mut usable = filled::<Usable>();
    let mut properties = sys::ze_device_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        pNext: (&raw mut usable).cast(),
        ..Default::default()
    };
    ok!(zeDeviceGetProperties(device(), &raw mut properties));
    usable.currUsableMemSize as usize
}

/// Other processes allocate and free memory at the same time, so that several attempts are needed at times.
#[test]
fn usable_memory_is_what_allocations_leave() {
    if !common::knows_newer_flags() {
        return; // The validation layer knows no such structure.
    }
    let (context, total) = (Context::new(), common::total());
    let (list, size) = (context.immediate(0), 256 * common::MIB);
    let is_less = || {
        let before = usable();
        assert!((1..=total).contains(&before));
        let memory = context.alloc(Kind::Device, size);
        common::fill(list, memory, &[1], size, common::NONE, &[]);
        common::finish(&context, list);
        let after = usable();
        context.free(memory);
        before.abs_diff(after + size) < size / 2
    };
    assert!((0..20).any(|_| is_less()));
    common::destroy(list);
}

/// No more than the machine tells: neither a bandwidth nor a latency.
#[test]
fn bandwidths_are_unknown() {
    if !common::knows_newer_flags() {
        return; // As above.
    }
    let mut copies = sys::ze_copy_bandwidth_exp_properties_t {
        copyBandwidth: 7,
        copyBandwidthUnit: sys::ZE_BANDWIDTH_UNIT_BYTES_PER_CLOCK,
        ..filled()
    };
    let mut group = sys::ze_command_queue_group_properties_t {
        pNext: (&raw mut copies).cast(),
        ..filled()
    };
    let mut count = 1;
    ok!(zeDeviceGetCommandQueueGroupProperties(
        device(),
        &raw mut count,
        &raw mut group
    ));
    let unknown = sys::ZE_BANDWIDTH_UNIT_UNKNOWN;
    assert_eq!(
        (copies.copyBandwidth, copies.copyBandwidthUnit),
        (0, unknown)
    );
    assert!(group.numQueues > 0);
    let mut peers = sys::ze_device_p2p_bandwidth_exp_properties_t {
        logicalBandwidth: 7,
        physicalLatency: 7,
        bandwidthUnit: sys::ZE_BANDWIDTH_UNIT_BYTES_PER_CLOCK,
        latencyUnit: sys::ZE_LATENCY_UNIT_HOP,
        ..filled()
    };
    let mut properties = sys::ze_device_p2p_properties_t {
        pNext: (&raw mut peers).cast(),
        ..filled()
    };
    let [first, second] = common::devices();
    ok!(zeDeviceGetP2PProperties(first, second, &raw mut properties));
    assert_eq!((peers.logicalBandwidth, peers.bandwidthUnit), (0, unknown));
    let unknown = sys::ZE_LATENCY_UNIT_UNKNOWN;
    assert_eq!((peers.physicalLatency, peers.latencyUnit), (0, unknown));
}

/// By vertices oneCCL would choose its kernels of GPUs, whose sums are wrong on the CPU.
#[test]
fn no_fabric_connects_devices() {
    type Vertices = unsafe extern "C" fn(
        sys::ze_driver_handle_t,
        *mut u32,
        *mut sys::ze_fabric_vertex_handle_t,
    ) -> sys::ze_result_t;
    if let Some(vertices) = common::extension::<Vertices>(c"zeFabricVertexGetExp") {
        let mut count = 7;
        let result = unsafe { vertices(common::driver(), &raw mut count, ptr::null_mut()) };
        assert_eq!((result, count), (OK, 0));
    }
    type Vertex = unsafe extern "C" fn(
        sys::ze_device_handle_t,
        *mut sys::ze_fabric_vertex_handle_t,
    ) -> sys::ze_result_t;
    if let Some(vertex) = common::extension::<Vertex>(c"zeDeviceGetFabricVertexExp") {
        let mut found = ptr::null_mut();
        let result = unsafe { vertex(device(), &raw mut found) };
        assert_eq!(result, sys::ZE_RESULT_EXP_ERROR_DEVICE_IS_NOT_VERTEX);
    }
}

/// Programs tell by the number what they can call: the last specification that added a function of the core, a few of which say that
/// they are not supported.
#[test]
fn the_version_is_that_of_the_newest_functions() {
    let (mut version, mut count) = (sys::ze_api_version_t(0), 0);
    ok!(zeDriverGetApiVersion(common::driver(), &raw mut version));
    assert_eq!((version.0 >> 16, version.0 & 0xffff), (1, 17));
    type Increment = unsafe extern "C" fn(sys::ze_device_handle_t, *mut u32) -> sys::ze_result_t;
    let name = c"zeDeviceGetAggregatedCopyOffloadIncrementValue";
    if let Some(increment) = common::extension::<Increment>(name) {
        let since_1_15 = unsafe { increment(device(), &raw mut count) };
        assert_eq!(since_1_15, sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    }
}

#[test]
fn the_default_context_is_one_of_the_driver() {
    type Default = unsafe extern "C" fn(sys::ze_driver_handle_t) -> sys::ze_context_handle_t;
    if !common::direct() {
        return; // The loader dereferences the handle.
    }
    let default = common::extension::<Default>(c"zeDriverGetDefaultContext").unwrap();
    let context = unsafe { default(common::driver()) };
    assert!(!context.is_null());
    assert_eq!(unsafe { default(common::driver()) }, context);
    assert!(unsafe { default(context.cast()) }.is_null());
}

#[test]
fn a_barrier_of_ranges_checks_them_and_waits() {
    let context = Context::new();
    let (list, pool) = (context.immediate(0), context.pool(1, false));
    let memory = context.alloc(Kind::Shared, 100);
    let mut ranges = [memory.cast_const(), ptr::without_provenance(usize::MAX)];
    let sizes = [100, 100];
    let barrier = |count: u32, sizes: *const usize, ranges: *mut *const c_void| {
        let (signal, waits) = (pool.events[0], ptr::null_mut());
        ze!(zeCommandListAppendMemoryRangesBarrier(
            list, count, sizes, ranges, signal, 0, waits
        ))
    };
    let null = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    assert_eq!(barrier(1, ptr::null(), ranges.as_mut_ptr()), null);
    assert_eq!(barrier(1, sizes.as_ptr(), ptr::null_mut()), null);
    assert_ne!(barrier(2, sizes.as_ptr(), ranges.as_mut_ptr()), OK);
    assert!(!common::is_set(pool.events[0]));
    assert_eq!(barrier(1, sizes.as_ptr(), ranges.as_mut_ptr()), OK);
    common::wait(pool.events[0]);
    common::destroy(list);
    context.free(memory);
}

#[test]
fn modules_that_need_no_linking_are_linked() {
    let context = Context::new();
    ok!(zeContextGetStatus(context.0));
    ok!(zeContextSystemBarrier(context.0, device()));
    if !common::direct() {
        return; // The loader reads all handles.
    }
    ok!(zeModuleDynamicLink(0, ptr::null_mut(), ptr::null_mut()));
    let mut none: sys::ze_module_handle_t = ptr::null_mut();
    let result = ze!(zeModuleDynamicLink(1, &raw mut none, ptr::null_mut()));
    assert_eq!(result, sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
}
