//! Events: states, waits, timeouts, timestamps, and commands that wait for them.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;
#[path = "common/counter.rs"]
mod counter;

use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use common::{
    Context, Event, Kind, MIB, NONE, OK, Result, SECOND, bytes, bytes_mut, device, is_set, wait,
};
use level_zero_sys as sys;

const NOT_READY: Result = sys::ZE_RESULT_NOT_READY;

#[test]
fn the_host_signals_and_resets() {
    let context = Context::new();
    let pool = context.pool(2, false);
    let [event, other] = pool.events[..] else {
        panic!()
    };
    assert!(!is_set(event));
    ok!(zeEventHostSignal(event));
    assert!(is_set(event) && !is_set(other));
    ok!(zeEventHostSynchronize(event, 0));
    ok!(zeEventHostSignal(event));
    ok!(zeEventHostReset(event));
    assert!(!is_set(event));
    ok!(zeEventHostReset(event));
}

/// One of many waits: other programs delay some of them, on a busy machine most.
#[test]
fn a_wait_ends_within_two_percent_of_its_timeout() {
    const TIMEOUT: Duration = Duration::from_millis(5);
    let context = Context::new();
    let pool = context.pool(1, false);
    let mut taken = (0..2000).map(|_| {
        let start = Instant::now();
        let code = ze!(zeEventHostSynchronize(
            pool.events[0],
            TIMEOUT.as_nanos() as u64
        ));
        assert_eq!(code, sys::ZE_RESULT_NOT_READY);
        let taken = start.elapsed();
        assert!(taken >= TIMEOUT, "{taken:?}");
        taken
    });
    assert!(taken.any(|taken| taken <= TIMEOUT + TIMEOUT / 50));
}

#[test]
fn timeouts_are_nanoseconds() {
    let context = Context::new();
    let pool = context.pool(1, false);
    for (timeout, at_most) in [(0, 50), (1, 50), (1_000, 50), (20_000_000, 500)] {
        let start = Instant::now();
        assert_eq!(
            ze!(zeEventHostSynchronize(pool.events[0], timeout)),
            NOT_READY
        );
        let taken = start.elapsed();
        assert!(taken >= Duration::from_nanos(timeout), "{taken:?}");
        assert!(taken < Duration::from_millis(at_most), "{taken:?}");
    }
}

#[test]
fn a_sleeping_host_is_woken() {
    let context = Context::new();
    let pool = context.pool(1, false);
    for timeout in [u64::MAX, u64::MAX - 1, 30 * SECOND] {
        ok!(zeEventHostReset(pool.events[0]));
        let event = pool.events[0] as usize;
        let waiting: Vec<_> = (0..3)
            .map(|_| thread::spawn(move || ze!(zeEventHostSynchronize(event as Event, timeout))))
            .collect();
        thread::sleep(Duration::from_millis(20));
        assert!(waiting.iter().all(|thread| !thread.is_finished()));
        ok!(zeEventHostSignal(pool.events[0]));
        assert!(
            waiting
                .into_iter()
                .all(|thread| thread.join().unwrap() == OK)
        );
    }
}

#[test]
fn an_append_never_waits_for_the_host() {
    let context = Context::new();
    let pool = context.pool(2, false);
    let memory = context.alloc(Kind::Shared, 64);
    bytes_mut(memory, 64).fill(1);
    for flags in common::queue_orders() {
        ok!(zeEventHostReset(pool.events[0]));
        ok!(zeEventHostReset(pool.events[1]));
        bytes_mut(memory, 64).fill(1);
        let list = context.immediate(*flags);
        let start = Instant::now();
        common::fill(list, memory, &[2], 64, pool.events[1], &pool.events[..1]);
        assert!(start.elapsed() < Duration::from_secs(5));
        thread::sleep(Duration::from_millis(30));
        assert!(!is_set(pool.events[1]), "signalled before its operation");
        assert_eq!(bytes(memory, 64), [1; 64]);
        ok!(zeEventHostSignal(pool.events[0]));
        wait(pool.events[1]);
        assert_eq!(bytes(memory, 64), [2; 64]);
        common::destroy(list);
    }
    context.free(memory);
}

#[test]
fn an_event_follows_its_operation() {
    let context = Context::new();
    let size = 32 * MIB;
    let pool = context.pool(1, false);
    let memory = context.alloc(Kind::Shared, size);
    let list = context.immediate(0);
    for round in 1..20_u8 {
        common::fill(list, memory, &[round], size, pool.events[0], &[]);
        wait(pool.events[0]);
        let all = bytes(memory, size);
        assert!(all[0] == round && all[size - 1] == round && all[size / 2] == round);
        assert!(all.iter().step_by(4093).all(|byte| *byte == round));
        ok!(zeEventHostReset(pool.events[0]));
    }
    common::destroy(list);
    context.free(memory);
}

#[test]
fn the_device_signals_waits_and_resets() {
    if !common::knows_newer_flags() {
        return;
    }
    let context = Context::new();
    let pool = context.pool(3, false);
    let [first, second, third] = pool.events[..] else {
        panic!()
    };
    let list = context.immediate(common::IN_ORDER_QUEUE);
    let mut waits = [first];
    ok!(zeCommandListAppendWaitOnEvents(list, 1, waits.as_mut_ptr()));
    ok!(zeCommandListAppendSignalEvent(list, second));
    ok!(zeCommandListAppendEventReset(list, first));
    ok!(zeCommandListAppendSignalEvent(list, third));
    assert_eq!(ze!(zeEventHostSynchronize(second, 10_000_000)), NOT_READY);
    ok!(zeEventHostSignal(first));
    wait(third);
    assert!(is_set(second) && !is_set(first));
    common::destroy(list);
}

#[test]
fn a_long_chain_of_events_runs_through() {
    let context = Context::new();
    let pool = context.pool(2_000, false);
    let lists = [context.immediate(0), context.immediate(0)];
    // Each waits for the one before, so none can run when it is appended.
    for (index, pair) in pool.events.windows(2).enumerate() {
        ok!(zeCommandListAppendBarrier(
            lists[index % 2],
            pair[1],
            1,
            pair.as_ptr().cast_mut(),
        ));
    }
    let last = *pool.events.last().unwrap();
    assert!(!is_set(last));
    ok!(zeEventHostSignal(pool.events[0]));
    wait(last);
    lists.into_iter().for_each(common::destroy);
}

fn timestamp(event: Event) -> std::result::Result<(u64, u64), Result> {
    let mut out = sys::ze_kernel_timestamp_result_t::default();
    match ze!(zeEventQueryKernelTimestamp(event, &raw mut out)) {
        OK => {
            assert_eq!(out.global.kernelStart, out.context.kernelStart);
            Ok((out.global.kernelStart, out.global.kernelEnd))
        }
        error => Err(error),
    }
}

fn device_time() -> u64 {
    let (mut host, mut on_device) = (0, 0);
    ok!(zeDeviceGetGlobalTimestamps(
        device(),
        &raw mut host,
        &raw mut on_device
    ));
    on_device
}

#[test]
fn kernel_timestamps_lie_on_the_devices_clock() {
    let context = Context::new();
    let pool = context.pool(3, true);
    let list = context.immediate(0);
    let memory = context.alloc(Kind::Device, 64 * MIB);
    assert_eq!(timestamp(pool.events[0]), Err(NOT_READY));
    let before = device_time();
    common::fill(list, memory, &[1], 64 * MIB, pool.events[0], &[]);
    ok!(zeCommandListAppendBarrier(list, NONE, 0, ptr::null_mut()));
    common::fill(list, memory, &[1], 64, pool.events[1], &[]);
    ok!(zeCommandListAppendBarrier(
        list,
        pool.events[2],
        0,
        ptr::null_mut()
    ));
    wait(pool.events[2]);
    let after = device_time();
    let [(start, end), (next, next_end), (last, last_end)] =
        [0, 1, 2].map(|index| timestamp(pool.events[index]).unwrap());
    let ordered = [before, start, end, next, next_end, last, last_end, after];
    assert!(ordered.is_sorted(), "{ordered:?}");
    assert!(
        end - start > 100_000,
        "64 MiB take more than 0.1 ms: {}",
        end - start
    );
    let plain = context.pool(1, false);
    ok!(zeEventHostSignal(plain.events[0]));
    assert_eq!(
        timestamp(plain.events[0]),
        Err(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
    );
    common::destroy(list);
    context.free(memory);
}

#[test]
fn the_clock_ticks_as_the_properties_say() {
    let mut out = sys::ze_device_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        ..Default::default()
    };
    ok!(zeDeviceGetProperties(device(), &raw mut out));
    let (start, ticks) = (Instant::now(), device_time());
    thread::sleep(Duration::from_millis(100));
    let (taken, ticks) = (start.elapsed(), device_time() - ticks);
    let nanoseconds = ticks * out.timerResolution;
    assert!(
        nanoseconds.abs_diff(taken.as_nanos() as u64) < 20_000_000,
        "{nanoseconds} {taken:?}"
    );
    out.stype = sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
    let nanoseconds_in_a_tick = out.timerResolution;
    ok!(zeDeviceGetProperties(device(), &raw mut out));
    assert_eq!(out.timerResolution, SECOND / nanoseconds_in_a_tick);
    assert!(out.timestampValidBits < 64 && device_time() >> out.timestampValidBits == 0);
}

#[test]
fn timestamps_are_written_to_memory() {
    let context = Context::new();
    let pool = context.pool(3, true);
    let list = context.immediate(0);
    let memory = context.alloc(Kind::Shared, 256);
    bytes_mut(memory, 256).fill(0);
    let before = device_time();
    for event in &pool.events[..2] {
        ok!(zeCommandListAppendBarrier(list, *event, 0, ptr::null_mut()));
    }
    let mut queried = [pool.events[0], pool.events[1]];
    let offsets = [96_usize, 32];
    ok!(zeCommandListAppendQueryKernelTimestamps(
        list,
        2,
        queried.as_mut_ptr(),
        memory,
        offsets.as_ptr(),
        NONE,
        0,
        ptr::null_mut(),
    ));
    ok!(zeCommandListAppendWriteGlobalTimestamp(
        list,
        memory.wrapping_byte_add(128).cast(),
        pool.events[2],
        0,
        ptr::null_mut(),
    ));
    wait(pool.events[2]);
    let word = |offset: usize| {
        u64::from_ne_bytes(bytes(memory, 256)[offset..offset + 8].try_into().unwrap())
    };
    assert_eq!((word(96), word(104)), timestamp(queried[0]).unwrap());
    assert_eq!((word(32), word(40)), timestamp(queried[1]).unwrap());
    assert!((before..=device_time()).contains(&word(128)));
    let short = unsafe { memory.byte_add(255) };
    assert_eq!(
        ze!(zeCommandListAppendQueryKernelTimestamps(
            list,
            2,
            queried.as_mut_ptr(),
            short,
            ptr::null(),
            NONE,
            0,
            ptr::null_mut(),
        )),
        sys::ZE_RESULT_ERROR_INVALID_SIZE
    );
    common::destroy(list);
    context.free(memory);
}

#[test]
fn objects_in_use_by_commands_can_be_destroyed() {
    let context = Context::new();
    let gate = context.pool(1, false);
    let memory = context.alloc(Kind::Shared, 4096);
    bytes_mut(memory, 4096).fill(0);
    {
        let list = context.immediate(0);
        let pool = context.pool(2, false);
        common::fill(list, memory, &[7], 4096, pool.events[0], &gate.events);
        common::fill(list, memory, &[8], 4096, pool.events[1], &pool.events[..1]);
        common::destroy(list);
    }
    ok!(zeEventHostSignal(gate.events[0]));
    let deadline = Instant::now() + Duration::from_secs(20);
    while unsafe { memory.cast::<u8>().read_volatile() } != 8 {
        assert!(Instant::now() < deadline);
        thread::yield_now();
    }
    context.free(memory);
}

#[test]
fn memory_freed_during_a_command_lives_until_it_is_complete() {
    let context = Context::new();
    let pool = context.pool(2, false);
    let list = context.immediate(0);
    let (to, from) = (
        context.alloc(Kind::Device, 8 * MIB),
        context.alloc(Kind::Device, 8 * MIB),
    );
    common::copy(list, to, from, 8 * MIB, pool.events[1], &pool.events[..1]);
    context.free(to);
    context.free(from);
    ok!(zeEventHostSignal(pool.events[0]));
    wait(pool.events[1]);
    common::destroy(list);
}

#[test]
fn pools_are_checked() {
    let context = Context::new();
    let mut pool = ptr::null_mut();
    let mut create = |count: u32, flags: u32| {
        let desc = sys::ze_event_pool_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
            count,
            flags,
            ..Default::default()
        };
        ze!(zeEventPoolCreate(
            context.0,
            &raw const desc,
            0,
            ptr::null_mut(),
            &raw mut pool
        ))
    };
    assert_eq!(create(0, 0), sys::ZE_RESULT_ERROR_INVALID_SIZE);
    assert_eq!(create(1, 1 << 9), sys::ZE_RESULT_ERROR_INVALID_ENUMERATION);
    let pool = context.pool(2, false);
    let mut desc = sys::ze_event_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_EVENT_DESC,
        index: 2,
        ..Default::default()
    };
    let mut event = ptr::null_mut();
    let mut create = |desc: &sys::ze_event_desc_t| {
        ze!(zeEventCreate(
            pool.pool,
            ptr::from_ref(desc),
            &raw mut event
        ))
    };
    assert_eq!(
        create(&desc),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
        "no such index"
    );
    desc.index = 0;
    desc.signal = 0x10;
    assert_eq!(create(&desc), sys::ZE_RESULT_ERROR_INVALID_ENUMERATION);
}

#[test]
fn counter_based_events_need_no_reset() {
    if !common::knows_newer_flags() {
        return;
    }
    let context = Context::new();
    let (event, pool) = counter::counter_event(common::library(), context.0);
    let gates = context.pool(3, false);
    let list = context.immediate(common::IN_ORDER_QUEUE);
    for gate in &gates.events {
        assert!(is_set(event), "nothing to wait for");
        let mut waits = [*gate];
        ok!(zeCommandListAppendBarrier(
            list,
            event,
            1,
            waits.as_mut_ptr()
        ));
        assert!(!is_set(event), "a new round without a reset");
        ok!(zeEventHostSignal(*gate));
        wait(event);
    }
    assert_eq!(
        ze!(zeEventHostReset(event)),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT
    );
    assert_eq!(
        ze!(zeEventHostSignal(event)),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT
    );
    common::destroy(list);
    ok!(zeEventDestroy(event));
    ok!(zeEventPoolDestroy(pool));
}

#[test]
fn two_lists_take_turns_by_events_that_are_reset() {
    const TURNS: usize = 60;
    let context = Context::new();
    for flags in common::queue_orders() {
        let pool = context.pool(2, false);
        let lists = [context.immediate(*flags), context.immediate(*flags)];
        let size = 4096;
        let (memory, log) = (
            context.alloc(Kind::Shared, size),
            context.alloc(Kind::Shared, TURNS * size),
        );
        bytes_mut(memory, size).fill(0xEE);
        // All turns are appended before the first one begins, so each depends on the event state that the previous turn
        // leaves.
        for turn in 0..TURNS {
            let (list, mine, other) = (lists[turn % 2], turn % 2, (turn + 1) % 2);
            let place = unsafe { log.byte_add(turn * size) };
            let mut wait = pool.events[mine];
            ok!(zeCommandListAppendWaitOnEvents(list, 1, &raw mut wait));
            ok!(zeCommandListAppendEventReset(list, pool.events[mine]));
            common::copy(list, place, memory, size, NONE, &[]);
            ok!(zeCommandListAppendBarrier(list, NONE, 0, ptr::null_mut()));
            common::fill(list, memory, &[turn as u8], size, NONE, &[]);
            ok!(zeCommandListAppendBarrier(list, NONE, 0, ptr::null_mut()));
            ok!(zeCommandListAppendSignalEvent(list, pool.events[other]));
        }
        ok!(zeEventHostSignal(pool.events[0]));
        lists
            .iter()
            .for_each(|list| common::finish(&context, *list));
        let found: Vec<u8> = bytes(log, TURNS * size)
            .iter()
            .copied()
            .step_by(size)
            .collect();
        let expected: Vec<u8> = (0..TURNS as u8).map(|turn| turn.wrapping_sub(1)).collect();
        assert_eq!(found[1..], expected[1..]);
        assert_eq!(found[0], 0xEE);
        assert!(is_set(pool.events[0]) && !is_set(pool.events[1]));
        lists.into_iter().for_each(common::destroy);
        context.free(memory);
        context.free(log);
    }
}
