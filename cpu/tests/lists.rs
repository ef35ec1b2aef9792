//! Lists, queues and fences: order, concurrency, recording.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;

use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use common::{
    Context, Event, Kind, List, MIB, NONE, OK, Result, SECOND, bytes, bytes_mut, is_set, wait,
};
use level_zero_sys as sys;

const INVALID: Result = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
const NOT_READY: Result = sys::ZE_RESULT_NOT_READY;

/// `zeCommandListHostSynchronize`, which the loader of Debian 12 does not have.
fn synchronize() -> sys::extensions::ze_pfnCommandListHostSynchronize_t {
    common::library().zeCommandListHostSynchronize
}

fn execute(queue: sys::ze_command_queue_handle_t, lists: &[List], fence: sys::ze_fence_handle_t) {
    ok!(zeCommandQueueExecuteCommandLists(
        queue,
        lists.len() as u32,
        lists.as_ptr().cast_mut(),
        fence,
    ));
}

fn fence(queue: sys::ze_command_queue_handle_t, flags: u32) -> sys::ze_fence_handle_t {
    let desc = sys::ze_fence_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_FENCE_DESC,
        flags,
        ..Default::default()
    };
    let mut fence = ptr::null_mut();
    ok!(zeFenceCreate(queue, &raw const desc, &raw mut fence));
    fence
}

/// They need neither, and programs that treat all lists alike call both.
#[test]
fn immediate_lists_may_be_closed_and_reset() {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 64);
    let list = context.immediate(0);
    for value in 1..4 {
        common::fill(list, memory, &[value], 64, NONE, &[]);
        ok!(zeCommandListClose(list));
        common::finish(&context, list);
        assert_eq!(bytes(memory, 64), [value; 64]);
        ok!(zeCommandListReset(list));
    }
    common::destroy(list);
    context.free(memory);
}

#[test]
fn in_order_lists_keep_the_order_of_large_and_small() {
    if !common::knows_newer_flags() {
        return;
    }
    let context = Context::new();
    let size = 24 * MIB;
    let (a, b) = (
        context.alloc(Kind::Shared, size),
        context.alloc(Kind::Shared, size),
    );
    let list = context.immediate(common::IN_ORDER_QUEUE);
    for round in 1..10_u8 {
        common::fill(list, a, &[round], size, NONE, &[]);
        common::copy(list, b, a, size, NONE, &[]);
        common::fill(list, a, &[round + 100], 64, NONE, &[]);
        common::copy(list, unsafe { b.byte_add(size - 64) }, a, 64, NONE, &[]);
        common::finish(&context, list);
        let b = bytes(b, size);
        assert!(b[..size - 64].iter().all(|byte| *byte == round));
        assert!(b[size - 64..].iter().all(|byte| *byte == round + 100));
    }
    common::destroy(list);
    context.free(a);
    context.free(b);
}

#[test]
fn a_barrier_follows_earlier_commands_and_precedes_later_ones() {
    let context = Context::new();
    let pool = context.pool(3, false);
    let memory = context.alloc(Kind::Shared, 64);
    bytes_mut(memory, 64).fill(0);
    let list = context.immediate(0);
    common::fill(list, memory, &[1], 64, NONE, &pool.events[..1]);
    ok!(zeCommandListAppendBarrier(
        list,
        pool.events[1],
        0,
        ptr::null_mut()
    ));
    common::fill(list, memory, &[2], 64, pool.events[2], &[]);
    assert_eq!(
        ze!(zeEventHostSynchronize(pool.events[2], 20_000_000)),
        NOT_READY
    );
    assert!(!is_set(pool.events[1]));
    ok!(zeEventHostSignal(pool.events[0]));
    wait(pool.events[2]);
    assert!(is_set(pool.events[1]));
    assert_eq!(bytes(memory, 64), [2; 64]);
    common::destroy(list);
    context.free(memory);
}

#[test]
fn independent_lists_do_not_wait_for_each_other() {
    let context = Context::new();
    let pool = context.pool(65, false);
    let blocked: Vec<List> = (0..64).map(|_| context.immediate(0)).collect();
    for (list, event) in blocked.iter().zip(&pool.events[1..]) {
        ok!(zeCommandListAppendBarrier(
            *list,
            *event,
            1,
            pool.events.as_ptr().cast_mut()
        ));
    }
    let free = context.immediate(0);
    let memory = context.alloc(Kind::Shared, 8 * MIB);
    common::fill(free, memory, &[3], 8 * MIB, NONE, &[]);
    common::finish(&context, free);
    assert!(pool.events.iter().all(|event| !is_set(*event)));
    ok!(zeEventHostSignal(pool.events[0]));
    pool.events.iter().for_each(|event| wait(*event));
    blocked.into_iter().chain([free]).for_each(common::destroy);
    context.free(memory);
}

#[test]
fn a_large_operation_does_not_block_its_caller() {
    let context = Context::new();
    let size = 512 * MIB;
    let memory = context.alloc(Kind::Device, size);
    let list = context.immediate(0);
    let pool = context.pool(1, false);
    let start = Instant::now();
    common::fill(list, memory, &[1], size, pool.events[0], &[]);
    let appended = start.elapsed();
    wait(pool.events[0]);
    let done = start.elapsed();
    assert!(appended * 4 < done, "{appended:?} of {done:?}");
    common::destroy(list);
    context.free(memory);
}

#[test]
fn lists_are_synchronized_with_a_timeout() {
    let context = Context::new();
    let pool = context.pool(1, false);
    let list = context.immediate(0);
    let regular = context.list(0);
    let Some(synchronize) = synchronize() else {
        return; // A loader older than the function; it is tested without that loader.
    };
    let synchronize = |list, timeout| unsafe { synchronize(list, timeout) };
    assert_eq!(synchronize(list, 0), OK, "nothing to wait for");
    ok!(zeCommandListAppendBarrier(
        list,
        NONE,
        1,
        pool.events.as_ptr().cast_mut()
    ));
    assert_eq!(synchronize(list, 0), NOT_READY);
    let start = Instant::now();
    assert_eq!(synchronize(list, 30_000_000), NOT_READY);
    assert!(start.elapsed() >= Duration::from_millis(30));
    let event = pool.events[0] as usize;
    let signalling = thread::spawn(move || {
        thread::sleep(Duration::from_millis(30));
        ok!(zeEventHostSignal(event as Event));
    });
    assert_eq!(synchronize(list, u64::MAX), OK);
    signalling.join().unwrap();
    assert_eq!(synchronize(regular, 0), INVALID, "not an immediate list");
    common::destroy(list);
    common::destroy(regular);
}

#[test]
fn a_synchronous_list_returns_when_the_work_is_done() {
    let context = Context::new();
    let mut desc = common::queue_desc(0);
    desc.mode = sys::ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
    let list = context.immediate_on(common::device(), &desc);
    let memory = context.alloc(Kind::Shared, 32 * MIB);
    for round in 1..6 {
        common::fill(list, memory, &[round], 32 * MIB, NONE, &[]);
        assert!(
            bytes(memory, 32 * MIB)
                .iter()
                .step_by(1021)
                .all(|byte| *byte == round)
        );
    }
    common::destroy(list);
    context.free(memory);
}

#[test]
fn a_synchronous_queue_returns_when_the_work_is_done() {
    let context = Context::new();
    let mut desc = common::queue_desc(0);
    desc.mode = sys::ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
    let (queue, mut list) = (context.queue_of(&desc), context.list(0));
    let memory = context.alloc(Kind::Shared, 32 * MIB);
    common::fill(list, memory, &[7], 32 * MIB, NONE, &[]);
    ok!(zeCommandListClose(list));
    for _ in 0..5 {
        bytes_mut(memory, 32 * MIB).fill(0);
        ok!(zeCommandQueueExecuteCommandLists(
            queue,
            1,
            &raw mut list,
            ptr::null_mut()
        ));
        assert!(bytes(memory, 32 * MIB).iter().all(|byte| *byte == 7));
    }
    ok!(zeCommandQueueDestroy(queue));
    common::destroy(list);
    context.free(memory);
}

#[test]
fn recorded_lists_run_again_and_again() {
    let context = Context::new();
    let queue = context.queue();
    let (a, b) = (
        context.alloc(Kind::Shared, 4096),
        context.alloc(Kind::Shared, 4096),
    );
    for flags in common::list_orders() {
        let list = context.list(*flags);
        common::copy(list, b, a, 4096, NONE, &[]);
        ok!(zeCommandListAppendBarrier(list, NONE, 0, ptr::null_mut()));
        common::fill(list, a, &[0xEE], 4096, NONE, &[]);
        bytes_mut(a, 4096).fill(1);
        bytes_mut(b, 4096).fill(0);
        let run = |lists: &mut [List]| {
            ze!(zeCommandQueueExecuteCommandLists(
                queue,
                lists.len() as u32,
                lists.as_mut_ptr(),
                ptr::null_mut(),
            ))
        };
        assert_eq!(run(&mut [list]), INVALID, "still open");
        assert_eq!(bytes(b, 4096), [0; 4096], "recording runs nothing");
        ok!(zeCommandListClose(list));
        assert_eq!(
            ze!(zeCommandListAppendBarrier(list, NONE, 0, ptr::null_mut())),
            INVALID,
            "closed"
        );
        for round in 1..5_u8 {
            bytes_mut(a, 4096).fill(round);
            execute(queue, &[list], ptr::null_mut());
            ok!(zeCommandQueueSynchronize(queue, u64::MAX));
            assert_eq!((bytes(a, 4096)[4095], bytes(b, 4096)[4095]), (0xEE, round));
        }
        ok!(zeCommandListReset(list));
        common::fill(list, b, &[5], 4096, NONE, &[]);
        ok!(zeCommandListClose(list));
        execute(queue, &[list, list], ptr::null_mut());
        ok!(zeCommandQueueSynchronize(queue, SECOND * 20));
        assert_eq!(bytes(b, 4096), [5; 4096]);
        common::destroy(list);
    }
    let immediate = context.immediate(0);
    let mut lists = [immediate];
    assert_eq!(
        ze!(zeCommandQueueExecuteCommandLists(
            queue,
            1,
            lists.as_mut_ptr(),
            ptr::null_mut()
        )),
        sys::ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE
    );
    assert_eq!(
        ze!(zeCommandQueueExecuteCommandLists(
            queue,
            0,
            lists.as_mut_ptr(),
            ptr::null_mut()
        )),
        sys::ZE_RESULT_ERROR_INVALID_SIZE
    );
    common::destroy(immediate);
    ok!(zeCommandQueueDestroy(queue));
    context.free(a);
    context.free(b);
}

#[test]
fn a_list_with_freed_memory_is_refused_as_a_whole() {
    let context = Context::new();
    let queue = context.queue();
    let (kept, freed) = (
        context.alloc(Kind::Shared, 64),
        context.alloc(Kind::Shared, 64),
    );
    bytes_mut(kept, 64).fill(0);
    let list = context.list(0);
    common::fill(list, kept, &[1], 64, NONE, &[]);
    common::fill(list, freed, &[1], 64, NONE, &[]);
    ok!(zeCommandListClose(list));
    context.free(freed);
    let mut lists = [list];
    assert_eq!(
        ze!(zeCommandQueueExecuteCommandLists(
            queue,
            1,
            lists.as_mut_ptr(),
            ptr::null_mut()
        )),
        INVALID
    );
    ok!(zeCommandQueueSynchronize(queue, u64::MAX));
    assert_eq!(bytes(kept, 64), [0; 64]);
    common::destroy(list);
    ok!(zeCommandQueueDestroy(queue));
    context.free(kept);
}

#[test]
fn fences_are_signalled_after_the_lists() {
    let context = Context::new();
    let (queue, other) = (context.queue(), context.queue());
    let gate = context.pool(1, false);
    let memory = context.alloc(Kind::Shared, 16 * MIB);
    let list = context.list(0);
    common::fill(list, memory, &[4], 16 * MIB, NONE, &gate.events);
    ok!(zeCommandListClose(list));
    let ended = fence(queue, 0);
    assert_eq!(ze!(zeFenceQueryStatus(ended)), NOT_READY);
    for _ in 0..3 {
        bytes_mut(memory, 16 * MIB).fill(0);
        execute(queue, &[list], ended);
        assert_eq!(ze!(zeFenceHostSynchronize(ended, 10_000_000)), NOT_READY);
        assert_eq!(ze!(zeCommandQueueSynchronize(queue, 0)), NOT_READY);
        ok!(zeEventHostSignal(gate.events[0]));
        ok!(zeFenceHostSynchronize(ended, u64::MAX));
        assert!(bytes(memory, 16 * MIB).iter().all(|byte| *byte == 4));
        ok!(zeFenceQueryStatus(ended));
        ok!(zeCommandQueueSynchronize(queue, u64::MAX));
        ok!(zeFenceReset(ended));
        assert_eq!(ze!(zeFenceQueryStatus(ended)), NOT_READY);
        ok!(zeEventHostReset(gate.events[0]));
    }
    let signalled = fence(queue, sys::ZE_FENCE_FLAG_SIGNALED.0);
    ok!(zeFenceQueryStatus(signalled));
    let mut lists = [list];
    assert_eq!(
        ze!(zeCommandQueueExecuteCommandLists(
            other,
            1,
            lists.as_mut_ptr(),
            ended
        )),
        sys::ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT,
        "another queue's fence"
    );
    ok!(zeFenceDestroy(ended));
    ok!(zeFenceDestroy(signalled));
    common::destroy(list);
    ok!(zeCommandQueueDestroy(queue));
    ok!(zeCommandQueueDestroy(other));
    context.free(memory);
}

#[test]
fn an_immediate_list_takes_recorded_ones() {
    type AppendLists = unsafe extern "C" fn(List, u32, *mut List, Event, u32, *mut Event) -> Result;
    let Some(append) =
        common::extension::<AppendLists>(c"zeCommandListImmediateAppendCommandListsExp")
    else {
        return; // A loader older than the function; it is tested without that loader.
    };
    let context = Context::new();
    let pool = context.pool(2, false);
    let memory = context.alloc(Kind::Shared, 64);
    bytes_mut(memory, 64).fill(0);
    let recorded = context.list(0);
    common::fill(recorded, memory, &[6], 64, NONE, &[]);
    ok!(zeCommandListClose(recorded));
    let list = context.immediate(0);
    let (mut lists, mut waits) = ([recorded, recorded], [pool.events[0]]);
    let result = unsafe {
        append(
            list,
            2,
            lists.as_mut_ptr(),
            pool.events[1],
            1,
            waits.as_mut_ptr(),
        )
    };
    assert_eq!(result, OK);
    assert_eq!(
        ze!(zeEventHostSynchronize(pool.events[1], 10_000_000)),
        NOT_READY
    );
    assert_eq!(bytes(memory, 64), [0; 64]);
    ok!(zeEventHostSignal(pool.events[0]));
    wait(pool.events[1]);
    assert_eq!(bytes(memory, 64), [6; 64]);
    let result = unsafe { append(recorded, 2, lists.as_mut_ptr(), NONE, 0, ptr::null_mut()) };
    assert_eq!(result, INVALID, "not an immediate list");
    common::destroy(list);
    common::destroy(recorded);
    context.free(memory);
}

#[test]
fn commands_that_never_run_are_released() {
    if !common::knows_newer_flags() {
        return;
    }
    let context = Context::new();
    // More commands than the stack would allow, if they were released recursively.
    let list = context.immediate(common::IN_ORDER_QUEUE);
    {
        let gate = context.pool(1, false);
        ok!(zeCommandListAppendBarrier(
            list,
            NONE,
            1,
            gate.events.as_ptr().cast_mut()
        ));
        for _ in 0..200_000 {
            ok!(zeCommandListAppendBarrier(list, NONE, 0, ptr::null_mut()));
        }
    }
    common::destroy(list);
}

#[test]
fn threads_submit_to_one_queue_and_to_lists_of_their_own() {
    let context = Context::new();
    let queue = context.queue() as usize;
    thread::scope(|scope| {
        for thread in 0..6_u8 {
            let context = &context;
            scope.spawn(move || {
                let memory = context.alloc(Kind::Shared, 3 * MIB);
                let regular = context.list(0);
                common::fill(regular, memory, &[thread], 3 * MIB, NONE, &[]);
                ok!(zeCommandListAppendBarrier(
                    regular,
                    NONE,
                    0,
                    ptr::null_mut()
                ));
                common::fill(regular, memory, &[thread, 9], 64, NONE, &[]);
                ok!(zeCommandListClose(regular));
                let immediate = context.immediate(0);
                for _ in 0..20 {
                    bytes_mut(memory, 3 * MIB).fill(0xFF);
                    execute(queue as _, &[regular], ptr::null_mut());
                    ok!(zeCommandQueueSynchronize(queue as _, u64::MAX));
                    assert_eq!(bytes(memory, 3 * MIB)[62..65], [thread, 9, thread]);
                    common::fill(immediate, memory, &[thread + 50], 2 * MIB, NONE, &[]);
                    common::finish(context, immediate);
                    assert_eq!(bytes(memory, 3 * MIB)[2 * MIB - 1], thread + 50);
                }
                common::destroy(regular);
                common::destroy(immediate);
                context.free(memory);
            });
        }
    });
    ok!(zeCommandQueueDestroy(queue as _));
}
