//! Graphs of launches.

use std::ptr;
use std::thread;

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;

use super::launches::Setup;
use super::process;
use super::recorded::{self, Executable};
use super::runtime::{call, must};

const NONE: sys::ze_event_handle_t = ptr::null_mut();

/// Adds `by` to its first argument, which is `x`.
fn increase(setup: &Setup, x: &[u32], by: u32) -> sys::ze_kernel_handle_t {
    let kernel = setup.kernel("increase", 1);
    for (index, code) in [
        setup.runtime.set(kernel, 0, x.as_ptr()),
        setup.runtime.set(kernel, 1, by),
        setup.runtime.set(kernel, 2, [0_u32; 2]),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(code, OK, "argument {index}");
    }
    kernel
}

/// A launch has the arguments that it had at the capture, and is executed as often as the graph.
#[test]
fn launches_are_executed_again() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let (first, second) = (runtime.immediate(true), runtime.immediate(true));
    let (x, y) = (runtime.shared(&[0; 64]), runtime.shared(&[0; 64]));
    let (kernel, other) = (increase(&setup, x, 1), increase(&setup, y, 1));
    let [forked, joined] = [(); 2].map(|()| recorded::counter(runtime.context, 0));
    let graph = recorded::record(first, || {
        for by in 1..=10_u32 {
            assert_eq!(runtime.set(kernel, 1, by), OK);
            runtime.launch(first, kernel, 64, NONE, &[]);
        }
        runtime.launch(first, kernel, 64, forked, &[]);
        runtime.launch(second, other, 64, NONE, &[forked]);
        must!(
            runtime,
            zeCommandListAppendMemoryCopy(
                second,
                y.as_mut_ptr().cast(),
                x.as_ptr().cast(),
                size_of_val(&x[..32]),
                joined,
                0,
                ptr::null_mut()
            )
        );
        runtime.launch(first, kernel, 64, NONE, &[joined]);
    });
    assert_eq!(runtime.set(kernel, 1, 1_000_000_u32), OK);
    must!(runtime, zeKernelDestroy(other));
    let executable = recorded::instantiate(graph).unwrap();
    assert_eq!((x[0], y[0]), (0, 0));
    for round in 1..=100 {
        assert_eq!(recorded::append(first, executable, NONE, &[]), OK);
        if round % 10 == 0 {
            assert_eq!(runtime.synchronize(first), OK);
            assert_eq!(*x, [75 * round; 64]);
            assert_eq!(y[..32], [75 * round - 10; 32]);
            assert_eq!(y[32..], [round; 32]);
        }
    }
    assert_eq!(recorded::destroy_executable(executable), OK);
    assert_eq!(recorded::destroy(graph), OK);
}

/// Each thread records and executes graphs of its own.
#[test]
fn threads_have_graphs_of_their_own() {
    let Some(setup) = Setup::new() else { return };
    let setup = &setup;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                let runtime = &setup.runtime;
                let (list, x) = (runtime.immediate(true), runtime.shared(&[0; 16]));
                let kernel = increase(setup, x, 3);
                for round in 1..=5 {
                    let graph = recorded::record(list, || {
                        for _ in 0..20 {
                            runtime.launch(list, kernel, 16, NONE, &[]);
                        }
                    });
                    let executable: Executable = recorded::instantiate(graph).unwrap();
                    for _ in 0..10 {
                        assert_eq!(recorded::append(list, executable, NONE, &[]), OK);
                    }
                    // What is submitted does not need them.
                    assert_eq!(recorded::destroy_executable(executable), OK);
                    assert_eq!(recorded::destroy(graph), OK);
                    assert_eq!(runtime.synchronize(list), OK);
                    assert_eq!(*x, [600 * round; 16]);
                }
                must!(runtime, zeCommandListDestroy(list));
            });
        }
    });
}

/// Without the device's engine, which keeps the order.
#[test]
fn an_execution_ends_with_the_last_of_its_commands() {
    process::alone_with(
        "graphs::a_kernel_ends_after_the_command_that_joins_its_list",
        &[("ZEUSM_CPU_ENGINES", "queue")],
    );
}

/// The list has no order.
#[test]
#[ignore = "run by an_execution_ends_with_the_last_of_its_commands"]
fn a_kernel_ends_after_the_command_that_joins_its_list() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let lists = [(); 2].map(|()| runtime.immediate(false));
    let (x, y) = (runtime.shared(&[5]), runtime.shared(&[0]));
    let kernel = setup.long(x);
    let [forked, joined] = [(); 2].map(|()| recorded::counter(runtime.context, 0));
    let done = runtime.events(1)[0];
    let barrier = |list, signal, mut waits: Vec<_>| {
        let (count, waits) = (waits.len() as u32, waits.as_mut_ptr());
        must!(
            runtime,
            zeCommandListAppendBarrier(list, signal, count, waits)
        );
    };
    let graph = recorded::record(lists[0], || {
        barrier(lists[0], forked, vec![]);
        runtime.launch(lists[1], kernel, 1, NONE, &[forked]);
        let (to, from) = (y.as_mut_ptr().cast(), (&raw const joined).cast());
        let (mut waits, size) = (forked, size_of_val(y));
        must!(
            runtime,
            zeCommandListAppendMemoryCopy(lists[1], to, from, size, joined, 1, &raw mut waits)
        );
        barrier(lists[0], NONE, vec![joined]);
    });
    let executable = recorded::instantiate(graph).unwrap();
    assert_eq!(recorded::append(lists[0], executable, done, &[]), OK);
    must!(runtime, zeEventHostSynchronize(done, u64::MAX));
    assert_ne!(x[0], 5);
    assert_eq!(recorded::destroy_executable(executable), OK);
    assert_eq!(recorded::destroy(graph), OK);
}
