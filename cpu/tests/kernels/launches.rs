//! Launches: results and order.

use std::ffi::c_void;
use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;
use level_zero_sys::extensions::{
    self, ze_command_list_append_launch_kernel_param_cooperative_desc_t as Cooperative,
};

use super::process;
use super::programs::{self, module};
use super::runtime::{Runtime, call, groups, must};

/// A runtime with the tests' module.
pub struct Setup {
    pub runtime: Runtime,
    pub module: sys::ze_module_handle_t,
}

// SAFETY: handles are numbers, and the library is thread-safe.
unsafe impl Sync for Setup {}

impl Setup {
    pub fn new() -> Option<Self> {
        let runtime = Runtime::with_compiler()?;
        let module = runtime.build(&module(), &[]).unwrap();
        Some(Self { runtime, module })
    }

    pub fn kernel(&self, name: &str, group: u32) -> sys::ze_kernel_handle_t {
        let kernel = self.runtime.kernel(self.module, name).unwrap();
        must!(self.runtime, zeKernelSetGroupSize(kernel, group, 1, 1));
        kernel
    }

    /// `work` on one integer for about a tenth of a second.
    pub fn long(&self, memory: &[u32]) -> sys::ze_kernel_handle_t {
        let kernel = self.kernel("work", 1);
        assert_eq!(self.runtime.set(kernel, 0, memory.as_ptr()), OK);
        assert_eq!(self.runtime.set(kernel, 1, 30_000_000_u64), OK);
        kernel
    }
}

/// The result of `work` for a value.
fn worked(mut value: u32, rounds: u64) -> u32 {
    for _ in 0..rounds {
        value = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    }
    value
}

/// `zeCommandListAppendLaunchKernelWithArguments` (1.14).
type WithArguments = unsafe extern "C" fn(
    sys::ze_command_list_handle_t,
    sys::ze_kernel_handle_t,
    sys::ze_group_count_t,
    [u32; 3],
    *const *const c_void,
    *const c_void,
    sys::ze_event_handle_t,
    u32,
    *mut sys::ze_event_handle_t,
) -> sys::ze_result_t;

#[test]
fn a_launch_with_its_arguments_sets_them() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let list = runtime.immediate(true);
    let kernel = runtime.kernel(setup.module, "work").unwrap();
    let memory = runtime.shared(&[5]);
    let (place, rounds) = (memory.as_ptr(), 7u64);
    let values = [(&raw const place).cast(), (&raw const rounds).cast()];
    // SAFETY: the type is the specification's.
    let launch: WithArguments =
        unsafe { runtime.extension(c"zeCommandListAppendLaunchKernelWithArguments") };
    let launch = |kernel, count, values: *const *const c_void, next: *const c_void| {
        let (none, waits) = (ptr::null_mut(), ptr::null_mut());
        let count = groups(count);
        // SAFETY: the handles are alive, and the values those of the kernel's two arguments.
        unsafe { launch(list, kernel, count, [1; 3], values, next, none, 0, waits) }
    };
    assert_eq!(
        launch(kernel, 1, ptr::null(), ptr::null()),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER
    );
    assert_eq!(launch(kernel, 1, values.as_ptr(), ptr::null()), OK);
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(memory[0], worked(5, rounds));

    // The value of local memory is its size. The chain may ask for a cooperative launch, which has a limit.
    let local = runtime.kernel(setup.module, "shared_memory").unwrap();
    let size = 64_usize;
    let values = [(&raw const place).cast(), (&raw const size).cast()];
    let mut chained = Cooperative {
        stype: extensions::ZE_STRUCTURE_TYPE_COMMAND_LIST_APPEND_PARAM_COOPERATIVE_DESC,
        pNext: ptr::null(),
        isCooperative: 1,
    };
    for (is_cooperative, kind, count, expected) in [
        (1, chained.stype, 1, OK),
        (0, chained.stype, 1, OK),
        (
            1,
            chained.stype,
            u32::MAX,
            sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
        ),
        (
            1,
            sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
            1,
            sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
        ),
    ] {
        (chained.isCooperative, chained.stype) = (is_cooperative, kind);
        let code = launch(local, count, values.as_ptr(), (&raw const chained).cast());
        assert_eq!(code, expected);
        assert_eq!(runtime.synchronize(list), OK);
    }
    assert_eq!(memory[0], 0, "its index");
}

#[test]
fn every_kind_of_argument_arrives() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let list = runtime.immediate(true);
    let (a, b, c) = (
        runtime.shared(&[1, 2, 3, 4]),
        runtime.shared(&[10, 20, 30, 40]),
        runtime.shared(&[0; 4]),
    );
    let add = setup.kernel("add", 2);
    for (index, memory) in [&a, &b, &c].into_iter().enumerate() {
        assert_eq!(runtime.set(add, index as u32, memory.as_ptr()), OK);
    }
    setup.runtime.launch(list, add, 2, ptr::null_mut(), &[]);
    // A launch captures the arguments at the append.
    assert_eq!(runtime.set(add, 0, c.as_ptr()), OK);
    let increase = setup.kernel("increase", 4);
    assert_eq!(runtime.set(increase, 0, c.as_ptr()), OK);
    assert_eq!(runtime.set(increase, 1, 100_u32), OK);
    assert_eq!(runtime.set(increase, 2, [77_u32, 1000]), OK);
    setup
        .runtime
        .launch(list, increase, 1, ptr::null_mut(), &[]);
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(c, [1111, 1122, 1133, 1144]);

    let shared_memory = setup.kernel("shared_memory", 1);
    assert_eq!(runtime.set(shared_memory, 0, c.as_ptr()), OK);
    must!(
        runtime,
        zeKernelSetArgumentValue(shared_memory, 1, 64, ptr::null())
    );
    setup
        .runtime
        .launch(list, shared_memory, 4, ptr::null_mut(), &[]);
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(c, [0, 1, 2, 3]);
}

/// Sets the global offset of a kernel.
fn set_offset(runtime: &Runtime, kernel: sys::ze_kernel_handle_t, offset: [u32; 3]) {
    type SetOffset =
        unsafe extern "C" fn(sys::ze_kernel_handle_t, u32, u32, u32) -> sys::ze_result_t;
    // SAFETY: the extension gives the function of this name this type.
    let function: SetOffset = unsafe { runtime.extension(c"zeKernelSetGlobalOffsetExp") };
    let [x, y, z] = offset;
    // SAFETY: the kernel is alive.
    assert_eq!(unsafe { function(kernel, x, y, z) }, OK);
}

#[test]
fn a_global_offset_moves_the_range() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let memory = runtime.shared(&[9; 6]);
    let kernel = setup.kernel("shared_memory", 1);
    assert_eq!(runtime.set(kernel, 0, memory.as_ptr()), OK);
    must!(runtime, zeKernelSetArgumentValue(kernel, 1, 4, ptr::null()));
    set_offset(runtime, kernel, [2, 0, 0]);
    let list = runtime.immediate(true);
    setup.runtime.launch(list, kernel, 3, ptr::null_mut(), &[]);
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(memory, [9, 9, 2, 3, 4, 9]);
}

#[test]
fn a_launch_has_the_fewest_dimensions() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&programs::dimensions(), &[]).unwrap();
    let kernel = runtime.kernel(module, "dimensions").unwrap();
    let memory = runtime.shared(&[0]);
    assert_eq!(runtime.set(kernel, 0, memory.as_ptr()), OK);
    let list = runtime.immediate(true);
    for (count, group, offset, expected) in [
        ([1, 1, 1], [1, 1, 1], [0, 0, 0], 1),
        ([5, 1, 1], [4, 1, 1], [3, 0, 0], 1),
        ([1, 3, 1], [1, 1, 1], [0, 0, 0], 2),
        ([2, 1, 1], [2, 2, 1], [0, 0, 0], 2),
        ([2, 1, 1], [2, 1, 1], [0, 7, 0], 2),
        ([1, 1, 2], [1, 1, 1], [0, 0, 0], 3),
        ([1, 2, 1], [1, 1, 2], [0, 0, 0], 3),
        ([1, 1, 1], [1, 1, 1], [0, 0, 1], 3),
    ] {
        let [x, y, z] = group;
        must!(runtime, zeKernelSetGroupSize(kernel, x, y, z));
        set_offset(&runtime, kernel, offset);
        let [x, y, z] = count;
        let count = sys::ze_group_count_t {
            groupCountX: x,
            groupCountY: y,
            groupCountZ: z,
        };
        must!(
            runtime,
            zeCommandListAppendLaunchKernel(
                list,
                kernel,
                &raw const count,
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        );
        assert_eq!(runtime.synchronize(list), OK);
        assert_eq!(memory, [expected], "{count:?} {group:?} {offset:?}");
    }
}

#[test]
fn launches_are_ordered_with_copies_and_fills() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let list = runtime.immediate(true);
    let count = 1 << 16;
    let (x, y) = (
        runtime.shared(&vec![0; count]),
        runtime.shared(&vec![0; count]),
    );
    let bytes = count * 4;
    let increase = setup.kernel("increase", 64);
    assert_eq!(runtime.set(increase, 0, x.as_ptr()), OK);
    assert_eq!(runtime.set(increase, 2, [0_u32; 2]), OK);
    for round in 0..50_u32 {
        let pattern = round;
        must!(
            runtime,
            zeCommandListAppendMemoryFill(
                list,
                x.as_mut_ptr().cast(),
                (&raw const pattern).cast(),
                4,
                bytes,
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        );
        assert_eq!(runtime.set(increase, 1, round * 7), OK);
        setup
            .runtime
            .launch(list, increase, (count / 64) as u32, ptr::null_mut(), &[]);
        setup
            .runtime
            .launch(list, increase, (count / 64) as u32, ptr::null_mut(), &[]);
        must!(
            runtime,
            zeCommandListAppendMemoryCopy(
                list,
                y.as_mut_ptr().cast(),
                x.as_ptr().cast(),
                bytes,
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        );
    }
    assert_eq!(runtime.synchronize(list), OK);
    assert!(y.iter().all(|&value| value == 49 + 2 * 49 * 7));
}

#[test]
fn an_append_does_not_wait_and_events_order_lists() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let events = runtime.events(4);
    let (first, second) = (runtime.immediate(false), runtime.immediate(false));
    let memory = runtime.shared(&[1]);
    let long = setup.long(memory);
    // The first waits for the host, the second for the first, and so on from list to list: a submission that waited
    // would hang.
    setup
        .runtime
        .launch(first, long, 1, events[1], &events[..1]);
    setup
        .runtime
        .launch(second, long, 1, events[2], &events[1..2]);
    setup
        .runtime
        .launch(first, long, 1, events[3], &events[2..3]);
    assert_eq!(
        call!(runtime, zeEventHostSynchronize(events[3], 10_000_000)),
        sys::ZE_RESULT_NOT_READY
    );
    assert_eq!(memory[0], 1);
    must!(runtime, zeEventHostSignal(events[0]));
    must!(runtime, zeEventHostSynchronize(events[3], u64::MAX));
    assert_eq!(memory[0], worked(1, 90_000_000));
    // A thread that sees the last one complete sees the earlier ones complete.
    for event in &events {
        must!(runtime, zeEventQueryStatus(*event));
    }
    let mut ended = 0;
    for event in &events[1..] {
        let mut times = sys::ze_kernel_timestamp_result_t::default();
        must!(runtime, zeEventQueryKernelTimestamp(*event, &raw mut times));
        assert!(
            times.global.kernelStart >= ended && times.global.kernelEnd > times.global.kernelStart
        );
        ended = times.global.kernelEnd;
    }
}

#[test]
fn a_regular_list_runs_again_and_again() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let desc = sys::ze_command_list_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
        ..Default::default()
    };
    let (mut list, mut queue, mut fence) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    must!(
        runtime,
        zeCommandListCreate(
            runtime.context,
            runtime.device,
            &raw const desc,
            &raw mut list
        )
    );
    let desc = sys::ze_command_queue_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
        mode: sys::ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
        ..Default::default()
    };
    must!(
        runtime,
        zeCommandQueueCreate(
            runtime.context,
            runtime.device,
            &raw const desc,
            &raw mut queue
        )
    );
    let desc = sys::ze_fence_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_FENCE_DESC,
        ..Default::default()
    };
    must!(
        runtime,
        zeFenceCreate(queue, &raw const desc, &raw mut fence)
    );
    let x = runtime.shared(&[0; 256]);
    let increase = setup.kernel("increase", 16);
    assert_eq!(runtime.set(increase, 0, x.as_ptr()), OK);
    assert_eq!(runtime.set(increase, 1, 1_u32), OK);
    assert_eq!(runtime.set(increase, 2, [0_u32, 2]), OK);
    setup
        .runtime
        .launch(list, increase, 16, ptr::null_mut(), &[]);
    must!(
        runtime,
        zeCommandListAppendBarrier(list, ptr::null_mut(), 0, ptr::null_mut())
    );
    setup
        .runtime
        .launch(list, increase, 8, ptr::null_mut(), &[]);
    must!(runtime, zeCommandListClose(list));
    must!(runtime, zeKernelDestroy(increase));
    for _ in 0..100 {
        must!(
            runtime,
            zeCommandQueueExecuteCommandLists(queue, 1, &raw mut list, fence)
        );
        must!(runtime, zeFenceHostSynchronize(fence, u64::MAX));
        must!(runtime, zeFenceReset(fence));
    }
    assert!(
        x[..128].iter().all(|&value| value == 600) && x[128..].iter().all(|&value| value == 300)
    );
}

#[test]
fn independent_lists_run_at_the_same_time() {
    process::alone_with(
        "launches::child_has_independent_lists",
        &[("ZEUSM_CPU_ENGINES", "queue")],
    );
}

#[test]
#[ignore = "run by independent_lists_run_at_the_same_time"]
fn child_has_independent_lists() {
    let Some(setup) = Setup::new() else { return };
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("skipped: one processor runs one kernel at a time");
        return;
    }
    let runtime = &setup.runtime;
    let events = runtime.events(4);
    let (slow, quick) = (runtime.immediate(true), runtime.immediate(true));
    let (x, y) = (runtime.shared(&[1]), runtime.shared(&[1]));
    let long = setup.long(x);
    for _ in 0..5 {
        setup.runtime.launch(slow, long, 1, ptr::null_mut(), &[]);
    }
    setup.runtime.launch(slow, long, 1, events[0], &[]);
    let short = setup.kernel("work", 1);
    assert_eq!(runtime.set(short, 0, y.as_ptr()), OK);
    assert_eq!(runtime.set(short, 1, 10_u64), OK);
    setup.runtime.launch(quick, short, 1, events[1], &[]);
    must!(runtime, zeEventHostSynchronize(events[1], u64::MAX));
    assert_eq!(y[0], worked(1, 10));
    let busy = call!(runtime, zeEventQueryStatus(events[0]));
    assert_eq!(
        busy,
        sys::ZE_RESULT_NOT_READY,
        "the quick kernel waited for the slow ones"
    );
    assert_eq!(runtime.synchronize(slow), OK);
}

#[test]
fn several_threads_launch_one_kernel() {
    let Some(setup) = Setup::new() else { return };
    let setup = &setup;
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            scope.spawn(move || {
                let runtime = &setup.runtime;
                let list = runtime.immediate(true);
                // Kernels of the same name share the compiled code, but not their arguments.
                let increase = setup.kernel("increase", 8);
                let memory = runtime.shared(&[0; 64]);
                assert_eq!(runtime.set(increase, 0, memory.as_ptr()), OK);
                assert_eq!(runtime.set(increase, 1, thread), OK);
                assert_eq!(runtime.set(increase, 2, [0_u32, 1]), OK);
                for _ in 0..500 {
                    setup
                        .runtime
                        .launch(list, increase, 8, ptr::null_mut(), &[]);
                }
                assert_eq!(runtime.synchronize(list), OK);
                assert!(memory.iter().all(|&value| value == 500 * (thread + 1)));
                must!(runtime, zeCommandListDestroy(list));
                must!(runtime, zeKernelDestroy(increase));
            });
        }
    });
}

#[test]
fn indirect_group_counts_are_read_at_execution() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let list = runtime.immediate(true);
    let counts = runtime.shared(&[1, 1, 1, 3, 1, 1, 2]);
    let memory = runtime.shared(&[0; 8]);
    let increase = setup.kernel("increase", 1);
    assert_eq!(runtime.set(increase, 0, memory.as_ptr()), OK);
    assert_eq!(runtime.set(increase, 1, 1_u32), OK);
    assert_eq!(runtime.set(increase, 2, [0_u32; 2]), OK);
    let event = runtime.events(1)[0];
    must!(
        runtime,
        zeCommandListAppendLaunchKernelIndirect(
            list,
            increase,
            counts.as_ptr().cast(),
            ptr::null_mut(),
            1,
            [event].as_mut_ptr()
        )
    );
    counts[0] = 5;
    must!(runtime, zeEventHostSignal(event));
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(memory, [1, 1, 1, 1, 1, 0, 0, 0]);
    must!(
        runtime,
        zeCommandListAppendLaunchMultipleKernelsIndirect(
            list,
            2,
            [increase, increase].as_mut_ptr(),
            &raw const counts[6],
            counts.as_ptr().cast(),
            ptr::null_mut(),
            0,
            ptr::null_mut()
        )
    );
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(memory, [3, 3, 3, 2, 2, 0, 0, 0]);
    let mut kernels = [increase];
    for (kernels, groups) in [
        (ptr::null_mut(), counts.as_ptr()),
        (kernels.as_mut_ptr(), ptr::null()),
    ] {
        let code = call!(
            runtime,
            zeCommandListAppendLaunchMultipleKernelsIndirect(
                list,
                1,
                kernels,
                &raw const counts[6],
                groups.cast(),
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        );
        assert_eq!(code, sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
}

/// As in OpenCL: a null value is a number of zeros, and an address that the kernel must not follow.
#[test]
fn arguments_may_be_null() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let list = runtime.immediate(true);
    let x = runtime.shared(&[7]);
    let kernel = setup.kernel("increase", 1);
    let null = |index, size| {
        must!(
            runtime,
            zeKernelSetArgumentValue(kernel, index, size, ptr::null())
        );
    };
    null(0, 8);
    null(1, 4);
    null(2, 8);
    runtime.launch(list, kernel, 0, ptr::null_mut(), &[]);
    assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
    runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(x[0], 7, "increased by nothing");
}

/// From the start of the first kernel to the end of the last one, which follows them.
#[test]
fn the_event_of_several_kernels_has_the_time_of_all() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let list = runtime.immediate(true);
    let events = runtime.events(2);
    let memory = runtime.shared(&[1]);
    let groups = runtime.shared(&[1; 24]);
    let count = runtime.shared(&[8]);
    let long = setup.long(memory);
    let took = |event| {
        must!(runtime, zeEventHostSynchronize(event, u64::MAX));
        let mut times = sys::ze_kernel_timestamp_result_t::default();
        must!(runtime, zeEventQueryKernelTimestamp(event, &raw mut times));
        times.global.kernelEnd - times.global.kernelStart
    };
    must!(
        runtime,
        zeCommandListAppendLaunchMultipleKernelsIndirect(
            list,
            8,
            [long; 8].as_mut_ptr(),
            count.as_ptr(),
            groups.as_ptr().cast(),
            events[0],
            0,
            ptr::null_mut()
        )
    );
    let all = took(events[0]);
    setup.runtime.launch(list, long, 1, events[1], &[]);
    let one = took(events[1]);
    assert!(all > 3 * one, "{all} and {one}");
}

#[test]
fn an_empty_launch_still_signals() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let event = runtime.events(1)[0];
    let memory = runtime.shared(&[1]);
    let list = runtime.immediate(true);
    setup
        .runtime
        .launch(list, setup.long(memory), 0, event, &[]);
    must!(runtime, zeEventHostSynchronize(event, u64::MAX));
    assert_eq!(memory[0], 1);
}

#[test]
fn a_cooperative_launch_is_limited_to_the_suggested_count() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let memory = runtime.shared(&[1]);
    let (kernel, list) = (setup.long(memory), runtime.immediate(true));
    let mut most = 0;
    must!(
        runtime,
        zeKernelSuggestMaxCooperativeGroupCount(kernel, &raw mut most)
    );
    assert!(most >= 1);
    let launch = |count| {
        let groups = groups(count);
        call!(
            runtime,
            zeCommandListAppendLaunchCooperativeKernel(
                list,
                kernel,
                &raw const groups,
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        )
    };
    assert_eq!(launch(most), OK);
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(memory[0], worked(1, 30_000_000));
    assert_eq!(launch(most + 1), sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

#[test]
fn freeing_memory_of_a_running_kernel_is_safe() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let list = runtime.immediate(true);
    for _ in 0..20 {
        let memory = runtime.shared(&vec![1; 1 << 20]);
        let kernel = setup.kernel("work", 64);
        assert_eq!(runtime.set(kernel, 0, memory.as_ptr()), OK);
        assert_eq!(runtime.set(kernel, 1, 10_u64), OK);
        setup
            .runtime
            .launch(list, kernel, 1 << 14, ptr::null_mut(), &[]);
        must!(runtime, zeKernelDestroy(kernel));
        must!(
            runtime,
            zeMemFree(runtime.context, memory.as_mut_ptr().cast())
        );
    }
    assert_eq!(runtime.synchronize(list), OK);
}
