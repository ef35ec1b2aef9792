//! The order of barriers, signals and fences between launches, which OpenCL orders itself.

use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;

use super::counter::counter_event;
#[cfg(target_os = "linux")]
use super::launches::Setup;
use super::programs::module;
use super::runtime::{Runtime, call, must};
#[cfg(target_os = "linux")]
use crate::forks::in_child;
#[cfg(target_os = "linux")]
use crate::process::alone;
use crate::process::run;

/// A runtime, and `work` set up for some rounds.
fn setup(rounds: u64) -> Option<(Runtime, sys::ze_kernel_handle_t)> {
    let runtime = Runtime::with_compiler()?;
    let module = runtime.build(&module(), &[]).unwrap();
    let kernel = runtime.kernel(module, "work").unwrap();
    must!(runtime, zeKernelSetGroupSize(kernel, 1, 1, 1));
    let memory = runtime.shared(&[0]);
    assert_eq!(runtime.set(kernel, 0, memory.as_ptr()), OK);
    assert_eq!(runtime.set(kernel, 1, rounds), OK);
    Some((runtime, kernel))
}

/// A runtime and events, for several threads.
struct Watched<'a>(&'a Runtime, &'a [sys::ze_event_handle_t]);

// SAFETY: handles are numbers, and the library is thread-safe.
unsafe impl Sync for Watched<'_> {}

impl Watched<'_> {
    /// Waits for the last event, `timeout` nanoseconds at a time, and checks all others.
    fn see(&self, timeout: u64) {
        let Self(runtime, [others @ .., last]) = self else {
            unreachable!()
        };
        while call!(runtime, zeEventHostSynchronize(*last, timeout)) != OK {}
        for event in others {
            must!(runtime, zeEventQueryStatus(*event));
        }
    }
}

#[test]
fn a_completed_launch_implies_that_earlier_ones_are_complete() {
    let Some((runtime, kernel)) = setup(1000) else {
        return;
    };
    let list = runtime.immediate(false);
    let events = runtime.events(5);
    let [first, barrier, second, signal, last] = events[..] else {
        unreachable!()
    };
    for _ in 0..300 {
        runtime.launch(list, kernel, 1, first, &[]);
        must!(
            runtime,
            zeCommandListAppendBarrier(list, barrier, 0, ptr::null_mut())
        );
        runtime.launch(list, kernel, 1, second, &[]);
        must!(runtime, zeCommandListAppendSignalEvent(list, signal));
        must!(
            runtime,
            zeCommandListAppendBarrier(list, ptr::null_mut(), 0, ptr::null_mut())
        );
        runtime.launch(list, kernel, 1, last, &[]);
        // Some threads sleep and some poll, as each may drain the queue.
        let watched = Watched(&runtime, &events);
        thread::scope(|scope| {
            for timeout in [u64::MAX, 1_000, 0] {
                let watched = &watched;
                scope.spawn(move || watched.see(timeout));
            }
        });
        for event in &events {
            must!(runtime, zeEventHostReset(*event as sys::ze_event_handle_t));
        }
    }
    assert_eq!(runtime.synchronize(list), OK);
}

#[test]
fn a_barrier_that_waits_for_its_own_event_holds_launches_back() {
    let Some((runtime, kernel)) = setup(10) else {
        return;
    };
    let list = runtime.immediate(false);
    let mut events = runtime.events(2);
    runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
    let own = events[0];
    must!(
        runtime,
        zeCommandListAppendBarrier(list, own, 1, events.as_mut_ptr())
    );
    runtime.launch(list, kernel, 1, events[1], &[]);
    assert_eq!(
        call!(runtime, zeEventHostSynchronize(events[1], 5_000_000)),
        sys::ZE_RESULT_NOT_READY
    );
    must!(runtime, zeEventHostSignal(own));
    must!(runtime, zeEventHostSynchronize(events[1], u64::MAX));
    assert_eq!(runtime.synchronize(list), OK);
}

/// Frees memory after all that uses it.
fn free_after_use(runtime: &Runtime, memory: &mut [u32]) {
    let desc = sys::ze_memory_free_ext_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
        freePolicy: 1,
        ..Default::default()
    };
    let memory = memory.as_mut_ptr().cast();
    must!(
        runtime,
        zeMemFreeExt(runtime.context, &raw const desc, memory)
    );
}

/// Frees memory that a launch with indirect access may use, which ends once the last gate is open.
pub fn check_free_waits(runtime: &Runtime, gates: &[sys::ze_event_handle_t]) {
    let (memory, watched) = (runtime.shared(&[0]), Watched(runtime, gates));
    let delay = Duration::from_millis(50);
    let begin = Instant::now();
    thread::scope(|scope| {
        let watched = &watched;
        scope.spawn(move || {
            let Watched(runtime, gates) = watched;
            thread::sleep(delay);
            must!(runtime, zeEventHostSignal(gates[gates.len() - 1]));
        });
        free_after_use(runtime, memory);
        assert!(begin.elapsed() >= delay);
    });
}

#[test]
fn a_blocking_free_waits_for_launches_with_indirect_access() {
    let Some((runtime, kernel)) = setup(10) else {
        return;
    };
    let [first, second] = [false; 2].map(|in_order| runtime.immediate(in_order));
    let gates = runtime.events(2);
    // Neither launch has the memory as an argument.
    runtime.launch(first, kernel, 1, ptr::null_mut(), &gates[..1]);
    free_after_use(&runtime, runtime.shared(&[0]));
    must!(runtime, zeKernelSetIndirectAccess(kernel, 4));
    runtime.launch(second, kernel, 1, ptr::null_mut(), &gates[1..]);
    must!(runtime, zeKernelSetIndirectAccess(kernel, 0));
    check_free_waits(&runtime, &gates);
    must!(runtime, zeEventHostSignal(gates[0]));
    assert_eq!(runtime.synchronize(first), OK);
    assert_eq!(runtime.synchronize(second), OK);
}

#[test]
fn the_exit_ends_launches_in_flight() {
    for thread in ["0", "1"] {
        for _ in 0..8 {
            let ended = run("order::exits_beside_launches", &[("THREAD", thread)]);
            let errors = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(0), "{} {errors}", ended.status);
        }
    }
}

#[test]
#[ignore = "run by the_exit_ends_launches_in_flight"]
fn exits_beside_launches() {
    let Some((runtime, kernel)) = setup(10) else {
        return;
    };
    let launch = |count| {
        let list = runtime.immediate(false);
        for _ in 0..count {
            runtime.launch(list, kernel, 64, ptr::null_mut(), &[]);
        }
    };
    if std::env::var("THREAD").unwrap() == "0" {
        launch(3000);
        std::process::exit(0);
    }
    let beside = Beside(launch);
    thread::scope(|scope| {
        let beside = &beside;
        scope.spawn(move || (beside.0)(u32::MAX));
        thread::sleep(Duration::from_millis(30));
        std::process::exit(0);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_sees_the_effects_of_launches_before_its_fork() {
    if Runtime::with_compiler().is_some() {
        alone("order::forks_behind_launches");
    }
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "run by a_child_sees_the_effects_of_launches_before_its_fork"]
fn forks_behind_launches() {
    let setup = Setup::new().unwrap();
    let runtime = &setup.runtime;
    let memory = runtime.shared(&[0, 1]);
    let kernel = setup.kernel("meet", 1);
    assert_eq!(runtime.set(kernel, 0, memory.as_ptr()), OK);
    let list = runtime.immediate(true);
    for _ in 0..20 {
        memory.copy_from_slice(&[0, 1]);
        runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
        in_child(|| runtime.synchronize(list) == OK && memory[0] == 1);
        assert_eq!(runtime.synchronize(list), OK);
    }
}

/// A function for another thread.
struct Beside<F>(F);

// SAFETY: handles are numbers, and the library is thread-safe.
unsafe impl<F> Sync for Beside<F> {}

#[test]
fn thousands_of_barriers_and_launches_end() {
    let Some((runtime, kernel)) = setup(100) else {
        return;
    };
    let (list, other) = (runtime.immediate(false), runtime.immediate(false));
    let mut event = runtime.events(1);
    for _ in 0..3000 {
        runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
        for _ in 0..3 {
            must!(
                runtime,
                zeCommandListAppendBarrier(list, ptr::null_mut(), 0, ptr::null_mut())
            );
        }
    }
    runtime.launch(list, kernel, 1, event[0], &[]);
    must!(
        runtime,
        zeCommandListAppendWaitOnEvents(other, 1, event.as_mut_ptr())
    );
    runtime.launch(other, kernel, 1, ptr::null_mut(), &[]);
    assert_eq!(runtime.synchronize(other), OK);
    assert_eq!(call!(runtime, zeEventQueryStatus(event[0])), OK);
    assert_eq!(runtime.synchronize(list), OK);
}

#[test]
fn chained_barriers_behind_a_launch_take_bounded_memory() {
    let Some((runtime, kernel)) = setup(30_000_000) else {
        return;
    };
    let list = runtime.immediate(false);
    let events = runtime.events(80);
    // Each barrier follows the previous one twice: by its event and by the order of the list.
    runtime.launch(list, kernel, 1, events[0], &[]);
    for index in 1..80 {
        let (mut awaited, signal) = (events[index - 1], events[index]);
        must!(
            runtime,
            zeCommandListAppendBarrier(list, signal, 1, &raw mut awaited)
        );
    }
    runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
    assert_eq!(
        call!(runtime, zeEventQueryStatus(events[79])),
        sys::ZE_RESULT_NOT_READY
    );
    assert_eq!(runtime.synchronize(list), OK);
    for event in events {
        must!(runtime, zeEventQueryStatus(event));
    }
}

/// The result of `work` for a value.
fn worked(value: u32, rounds: u64) -> u32 {
    (0..rounds).fold(value, |value, _| {
        value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
    })
}

fn barrier(runtime: &Runtime, list: sys::ze_command_list_handle_t) {
    let none = ptr::null_mut();
    must!(
        runtime,
        zeCommandListAppendBarrier(list, none, 0, none.cast())
    );
}

fn copy(runtime: &Runtime, list: sys::ze_command_list_handle_t, to: &mut [u32], from: &[u32]) {
    must!(
        runtime,
        zeCommandListAppendMemoryCopy(
            list,
            to.as_mut_ptr().cast(),
            from.as_ptr().cast(),
            size_of_val(from),
            ptr::null_mut(),
            0,
            ptr::null_mut()
        )
    );
}

#[test]
fn a_wait_for_copies_behind_barriers_waits_for_the_kernel_before_them() {
    const ROUNDS: u64 = 1_000_000;
    let Some((runtime, kernel)) = setup(ROUNDS) else {
        return;
    };
    let list = runtime.immediate(false);
    let (source, a, b) = (
        runtime.shared(&[1]),
        runtime.shared(&[0]),
        runtime.shared(&[0]),
    );
    assert_eq!(runtime.set(kernel, 0, source.as_ptr()), OK);
    for round in 0..30 {
        (source[0], a[0], b[0]) = (round, 0, 0);
        runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
        barrier(&runtime, list);
        copy(&runtime, list, a, source);
        copy(&runtime, list, b, source);
        barrier(&runtime, list);
        assert_eq!(runtime.synchronize(list), OK);
        let expected = worked(round, ROUNDS);
        assert_eq!([a[0], b[0]], [expected; 2], "round {round}");
    }
}

#[test]
fn lists_are_destroyed_right_after_their_kernels() {
    let Some((runtime, kernel)) = setup(100) else {
        return;
    };
    let kernel = kernel as usize;
    let runtime = &Shared(runtime);
    let begun = Instant::now();
    thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let Shared(runtime) = runtime;
                let kernel = kernel as sys::ze_kernel_handle_t;
                let event = runtime.events(1)[0];
                for round in 0..300 {
                    let list = runtime.immediate((round + thread) % 2 == 0);
                    runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
                    runtime.launch(list, kernel, 1, event, &[]);
                    if round % 3 == 0 {
                        assert_eq!(runtime.synchronize(list), OK);
                    }
                    must!(runtime, zeCommandListDestroy(list));
                    if round % 3 != 0 {
                        must!(runtime, zeEventHostSynchronize(event, u64::MAX));
                    }
                    must!(runtime, zeEventHostReset(event));
                }
            });
        }
    });
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// A runtime for several threads.
struct Shared(Runtime);

// SAFETY: handles are numbers, and the library is thread-safe.
unsafe impl Sync for Shared {}

#[test]
fn kernels_of_two_lists_take_turns_by_events_that_are_reset() {
    const ROUNDS: u64 = 10_000;
    let Some((runtime, kernel)) = setup(ROUNDS) else {
        return;
    };
    for in_order in [false, true] {
        let lists = [runtime.immediate(in_order), runtime.immediate(in_order)];
        let mut events = runtime.events(2);
        let (source, log) = (runtime.shared(&[1]), runtime.shared(&[0; 40]));
        assert_eq!(runtime.set(kernel, 0, source.as_ptr()), OK);
        for (turn, place) in log.chunks_mut(1).enumerate() {
            let (list, mine, other) = (lists[turn % 2], turn % 2, (turn + 1) % 2);
            let wait = &raw mut events[mine];
            must!(runtime, zeCommandListAppendWaitOnEvents(list, 1, wait));
            must!(runtime, zeCommandListAppendEventReset(list, events[mine]));
            runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
            barrier(&runtime, list);
            copy(&runtime, list, place, source);
            barrier(&runtime, list);
            must!(runtime, zeCommandListAppendSignalEvent(list, events[other]));
        }
        must!(runtime, zeEventHostSignal(events[0]));
        for list in lists {
            assert_eq!(runtime.synchronize(list), OK);
        }
        let expected = (1..=40).map(|turns| worked(1, turns * ROUNDS));
        assert!(log.iter().copied().eq(expected), "in order: {in_order}");
        must!(runtime, zeEventQueryStatus(events[0]));
        assert_eq!(
            call!(runtime, zeEventQueryStatus(events[1])),
            sys::ZE_RESULT_NOT_READY
        );
    }
}

#[test]
fn in_order_lists_with_counter_based_events_see_whole_results() {
    const ROUNDS: u64 = 20_000;
    const STEPS: usize = 30;
    let Some((runtime, kernel)) = setup(ROUNDS) else {
        return;
    };
    let (producer, consumer) = (runtime.immediate(true), runtime.immediate(true));
    let event = || counter_event(runtime.library, runtime.context).0;
    let (produced, consumed) = (event(), event());
    for _ in 0..10 {
        let (value, log) = (runtime.shared(&[1]), runtime.shared(&[0; STEPS]));
        assert_eq!(runtime.set(kernel, 0, value.as_ptr()), OK);
        for place in log.chunks_mut(1) {
            // The events are reused for each step, and refer to the latest command that signals them.
            let mut ready = produced;
            runtime.launch(producer, kernel, 1, produced, &[consumed]);
            must!(
                runtime,
                zeCommandListAppendMemoryCopy(
                    consumer,
                    place.as_mut_ptr().cast(),
                    value.as_ptr().cast(),
                    4,
                    consumed,
                    1,
                    &raw mut ready
                )
            );
        }
        must!(runtime, zeEventHostSynchronize(consumed, u64::MAX));
        let expected = (1..=STEPS as u64).map(|step| worked(1, step * ROUNDS));
        assert!(log.iter().copied().eq(expected));
    }
    assert_eq!(runtime.synchronize(producer), OK);
}
