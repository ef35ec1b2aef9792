//! The order of commands of different lists.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;
#[path = "common/process.rs"]
mod process;

use common::{Context, Event, Kind, List, MIB, NONE, bytes, copy, destroy, fill, is_set, wait};
use level_zero_sys as sys;

const SIZE: usize = 64 * MIB;

/// An immediate list of a queue group.
fn immediate(context: &Context, device: sys::ze_device_handle_t, ordinal: u32) -> List {
    let desc = sys::ze_command_queue_desc_t {
        ordinal,
        ..common::queue_desc(0)
    };
    context.immediate_on(device, &desc)
}

/// Fills memory in one list, reads it in another without waiting, and counts the rounds in which this read old bytes.
fn stale_reads(first: List, second: List) -> usize {
    let context = Context::new();
    let pool = context.pool(1, false);
    let (memory, read) = (
        context.alloc(Kind::Device, SIZE),
        context.alloc(Kind::Host, 1),
    );
    let stale = (1..8).filter(|round| {
        ok!(zeEventHostReset(pool.events[0]));
        fill(first, memory, &[*round], SIZE, NONE, &[]);
        let last = memory.wrapping_byte_add(SIZE - 1);
        copy(second, read, last, 1, pool.events[0], &[]);
        wait(pool.events[0]);
        bytes(read, 1)[0] != *round
    });
    let stale = stale.count();
    common::finish(&context, first);
    context.free(memory);
    context.free(read);
    stale
}

#[test]
fn a_device_executes_commands_in_the_order_of_submission() {
    let context = Context::new();
    for device in common::devices() {
        for ordinal in [0, 1] {
            let lists = [0, ordinal].map(|ordinal| immediate(&context, device, ordinal));
            assert_eq!(stale_reads(lists[0], lists[1]), 0);
            lists.into_iter().for_each(destroy);
        }
    }
}

#[test]
fn a_command_of_a_list_does_not_overtake_one_that_waits() {
    let context = Context::new();
    let pool = context.pool(2, false);
    let [host, last]: [Event; 2] = pool.events[..].try_into().unwrap();
    let memory = context.alloc(Kind::Shared, 64);
    for device in common::devices() {
        for ordinal in [0, 1] {
            let list = immediate(&context, device, ordinal);
            fill(list, memory, &[1], 64, NONE, &[host]);
            fill(list, memory, &[2], 64, last, &[]);
            assert_eq!(
                ze!(zeEventHostSynchronize(last, 20_000_000)),
                sys::ZE_RESULT_NOT_READY
            );
            ok!(zeEventHostSignal(host));
            wait(last);
            assert_eq!(bytes(memory, 64), [2; 64]);
            pool.events
                .iter()
                .for_each(|event| ok!(zeEventHostReset(*event)));
            destroy(list);
        }
    }
    context.free(memory);
}

#[test]
fn the_environment_makes_all_lists_independent() {
    process::alone_with(
        "child_has_independent_lists",
        &[("ZEUSM_CPU_ENGINES", "queue")],
    );
}

#[test]
#[ignore = "run by the_environment_makes_all_lists_independent"]
fn child_has_independent_lists() {
    let context = Context::new();
    let lists = [0; 2].map(|flags| context.immediate(flags));
    assert!(stale_reads(lists[0], lists[1]) > 0);
    lists.into_iter().for_each(destroy);
}

#[test]
fn a_command_that_waits_for_the_host_delays_its_own_list_only() {
    let context = Context::new();
    let pool = context.pool(4, false);
    let [host, filled, copied, other]: [Event; 4] = pool.events[..].try_into().unwrap();
    let (from, to) = (
        context.alloc(Kind::Shared, SIZE),
        context.alloc(Kind::Shared, SIZE),
    );
    let (waiting, free) = (
        context.immediate(common::IN_ORDER_QUEUE * u32::from(common::knows_newer_flags())),
        context.immediate(0),
    );
    for round in 1..10 {
        fill(waiting, from, &[round], SIZE, filled, &[]);
        // It follows the fill, by the list's order or by its event.
        copy(waiting, to, from, SIZE, copied, &[host, filled]);
        fill(free, from, &[0], 0, other, &[]);
        wait(other);
        assert!(!is_set(copied));
        wait(filled);
        ok!(zeEventHostSignal(host));
        wait(copied);
        assert!(bytes(to, SIZE).iter().all(|byte| *byte == round));
        for event in &pool.events {
            ok!(zeEventHostReset(*event));
        }
    }
    [waiting, free].into_iter().for_each(destroy);
    context.free(from);
    context.free(to);
}

#[test]
fn a_command_may_wait_for_a_later_one_of_another_list() {
    let context = Context::new();
    let pool = context.pool(4, false);
    let [first, second, reset, end]: [Event; 4] = pool.events[..].try_into().unwrap();
    let lists = [0; 2].map(|flags| context.immediate(flags));
    let barrier = |list, signal, waits: &[Event]| {
        let count = waits.len() as u32;
        ok!(zeCommandListAppendBarrier(
            list,
            signal,
            count,
            common::array(waits)
        ));
    };
    for _ in 0..100 {
        barrier(lists[0], second, &[first]);
        barrier(lists[1], NONE, &[]);
        barrier(lists[1], first, &[]);
        ok!(zeCommandListAppendWaitOnEvents(
            lists[1],
            1,
            common::array(&[second])
        ));
        // Submitted while the first is set, and reached when it is reset, until the next one sets it.
        ok!(zeCommandListAppendEventReset(lists[1], first));
        barrier(lists[1], reset, &[]);
        barrier(lists[1], end, &[first]);
        barrier(lists[0], first, &[reset]);
        wait(end);
        for event in &pool.events {
            ok!(zeEventHostReset(*event));
        }
    }
    lists.into_iter().for_each(destroy);
}
