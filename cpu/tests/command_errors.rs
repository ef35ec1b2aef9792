//! Errors of commands that are submitted already: who reports them.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, missing_docs)]

#[macro_use]
mod common;

use std::ptr;

use level_zero_sys as sys;

use common::{Context, Event, Kind, List, Memory, OK};

const FAULT: sys::ze_result_t = sys::ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;

/// Appends a command that fails when it runs: it queries the time of an event that is not set.
fn fail(list: List, unset: Event, memory: Memory, signal: Event) {
    let mut queried = unset;
    ok!(zeCommandListAppendQueryKernelTimestamps(
        list,
        1,
        &raw mut queried,
        memory,
        ptr::null(),
        signal,
        0,
        ptr::null_mut(),
    ));
}

fn barrier(list: List, signal: Event) {
    ok!(zeCommandListAppendBarrier(list, signal, 0, ptr::null_mut()));
}

fn wait(event: Event) -> sys::ze_result_t {
    ze!(zeEventHostSynchronize(event, u64::MAX))
}

#[test]
fn the_event_of_a_command_reports_its_error() {
    let context = Context::new();
    let pool = context.pool(4, true);
    let events = &pool.events;
    let memory = context.alloc(Kind::Shared, 64);
    for flags in common::queue_orders() {
        let list = context.immediate(*flags);
        let [unset, own, behind, later] = events[..] else {
            unreachable!()
        };
        fail(list, unset, memory, own);
        barrier(list, behind);
        barrier(list, later);
        assert_eq!(wait(own), FAULT);
        assert_eq!(ze!(zeEventQueryStatus(own)), sys::ZE_RESULT_SUCCESS);
        // The first barrier reports the errors before it, and the next one those since.
        assert_eq!(wait(behind), FAULT);
        assert_eq!(wait(later), OK);
        // The loader of Debian 12 does not have it.
        if let Some(synchronize) = common::library().zeCommandListHostSynchronize {
            assert_eq!(unsafe { synchronize(list, u64::MAX) }, FAULT);
            assert_eq!(unsafe { synchronize(list, u64::MAX) }, OK);
        }
        for event in events {
            ok!(zeEventHostReset(*event));
        }
        barrier(list, own);
        assert_eq!(wait(own), OK, "a reset forgets the error");
        ok!(zeEventHostReset(own));
        common::destroy(list);
    }
    context.free(memory);
}

#[test]
fn a_command_that_waits_for_an_event_reports_its_error_too() {
    let context = Context::new();
    let gate = context.pool(1, false);
    let pool = context.pool(3, true);
    let memory = context.alloc(Kind::Shared, 64);
    let list = context.immediate(0);
    let [unset, own, behind] = pool.events[..] else {
        unreachable!()
    };
    let mut first = gate.events[0];
    ok!(zeCommandListAppendWaitOnEvents(list, 1, &raw mut first));
    fail(list, unset, memory, own);
    barrier(list, behind);
    assert_eq!(ze!(zeEventQueryStatus(own)), sys::ZE_RESULT_NOT_READY);
    ok!(zeEventHostSignal(gate.events[0]));
    assert_eq!(wait(behind), FAULT);
    assert_eq!(wait(own), FAULT);
    common::destroy(list);
    context.free(memory);
}

/// The runtime orders such a barrier behind the commands in the device's engine, by a marker of its own.
#[test]
fn a_barrier_that_waits_for_the_host_reports_the_errors_before_it() {
    const SIZE: usize = 64 * common::MIB;
    let context = Context::new();
    let pool = context.pool(5, true);
    let [unset, filled, gate, behind, later] = pool.events[..] else {
        unreachable!()
    };
    let memory = context.alloc(Kind::Device, SIZE);
    for flags in common::queue_orders() {
        let list = context.immediate(*flags);
        // Takes so long that the engine is not empty when the barrier is appended.
        common::fill(list, memory, &[1], SIZE, filled, &[]);
        let (mut queried, mut before, mut host) = (unset, filled, gate);
        ok!(zeCommandListAppendQueryKernelTimestamps(
            list,
            1,
            &raw mut queried,
            memory,
            ptr::null(),
            ptr::null_mut(),
            1,
            &raw mut before,
        ));
        ok!(zeCommandListAppendBarrier(list, behind, 1, &raw mut host));
        barrier(list, later);
        ok!(zeEventHostSignal(gate));
        assert_eq!(wait(behind), FAULT);
        assert_eq!(wait(later), OK);
        for event in &pool.events {
            ok!(zeEventHostReset(*event));
        }
        common::destroy(list);
    }
    context.free(memory);
}

#[test]
fn a_fence_reports_the_errors_since_the_one_before() {
    let context = Context::new();
    let pool = context.pool(2, true);
    let memory = context.alloc(Kind::Shared, 64);
    let queue = context.queue();
    let (mut bad, mut good) = (context.list(0), context.list(0));
    fail(bad, pool.events[0], memory, pool.events[1]);
    barrier(good, ptr::null_mut());
    let desc = sys::ze_fence_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_FENCE_DESC,
        ..Default::default()
    };
    let mut fence = ptr::null_mut();
    ok!(zeFenceCreate(queue, &raw const desc, &raw mut fence));
    ok!(zeCommandListClose(bad));
    ok!(zeCommandListClose(good));
    for (list, expected) in [(&mut bad, FAULT), (&mut good, OK)] {
        let list: *mut List = list;
        ok!(zeCommandQueueExecuteCommandLists(queue, 1, list, fence));
        assert_eq!(ze!(zeFenceHostSynchronize(fence, u64::MAX)), expected);
        assert_eq!(ze!(zeFenceQueryStatus(fence)), sys::ZE_RESULT_SUCCESS);
        assert_eq!(ze!(zeCommandQueueSynchronize(queue, u64::MAX)), expected);
        ok!(zeFenceReset(fence));
    }
    assert_eq!(wait(pool.events[1]), FAULT);
    ok!(zeFenceDestroy(fence));
    common::destroy(bad);
    common::destroy(good);
    ok!(zeCommandQueueDestroy(queue));
    context.free(memory);
}
