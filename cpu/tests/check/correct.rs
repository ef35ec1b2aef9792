//! Correct programs, without findings.

use std::hint::spin_loop;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use level_zero_sys as sys;

use crate::common::{
    self, Context, Event, Kind, List, MIB, Memory, NONE, SECOND, bytes, copy, destroy, fill, wait,
};
use crate::counter::counter_event;
use crate::gallery::{Program, copy_half};

pub const PROGRAMS: &[Program] = &[
    (
        "copies_in_order_of_barriers",
        &[],
        copies_in_order_of_barriers,
    ),
    ("copies_in_order_of_events", &[], copies_in_order_of_events),
    ("shared_memory_after_waits", &[], shared_memory_after_waits),
    (
        "shared_memory_after_timestamps",
        &[],
        shared_memory_after_timestamps,
    ),
    (
        "many_allocations_of_all_sizes",
        &[],
        many_allocations_of_all_sizes,
    ),
    ("parts_of_one_allocation", &[], parts_of_one_allocation),
    (
        "resets_of_events_that_are_new",
        &[],
        resets_of_events_that_are_new,
    ),
    ("a_copy_between_contexts", &[], a_copy_between_contexts),
    (
        "a_copy_after_a_later_signal",
        &[],
        a_copy_after_a_later_signal,
    ),
    ("a_copy_after_the_host", &[], a_copy_after_the_host),
    (
        "a_copy_beside_what_it_waits_for",
        &[],
        a_copy_beside_what_it_waits_for,
    ),
    ("a_box_beside_another_one", &[], a_box_beside_another_one),
    ("timestamps_in_memory", &[], timestamps_in_memory),
    (
        "more_commands_than_are_remembered",
        &[],
        more_commands_than_are_remembered,
    ),
];

fn copies_in_order_of_barriers() {
    let context = Context::new();
    let (list, memory) = (context.immediate(0), context.alloc(Kind::Device, 4 * MIB));
    let mut to = vec![0_u8; 4 * MIB];
    fill(list, memory, &[7], 4 * MIB, NONE, &[]);
    ok!(zeCommandListAppendBarrier(list, NONE, 0, ptr::null_mut()));
    copy(list, to.as_mut_ptr().cast(), memory, 4 * MIB, NONE, &[]);
    common::finish(&context, list);
    assert!(to.iter().all(|byte| *byte == 7));
    destroy(list);
    context.free(memory);
}

fn copies_in_order_of_events() {
    let context = Context::new();
    let (pool, memory) = (context.pool(2, false), context.alloc(Kind::Device, 1000));
    let lists = [context.immediate(0), context.immediate(0)];
    let [first, second]: [Event; 2] = pool.events.clone().try_into().unwrap();
    for _ in 0..10 {
        fill(lists[0], memory, &[1], 1000, first, &[]);
        fill(lists[1], memory, &[2], 1000, second, &[first]);
        wait(second);
        ok!(zeEventHostReset(first));
        ok!(zeEventHostReset(second));
    }
    lists.into_iter().for_each(destroy);
    context.free(memory);
}

/// The command that signals is submitted after the commands that it follows, and all of them after the copy.
fn a_copy_after_a_later_signal() {
    let context = Context::new();
    let (pool, memory) = (context.pool(2, false), context.alloc(Kind::Device, 2000));
    let lists = [context.immediate(0), context.immediate(0)];
    let [first, second]: [Event; 2] = pool.events.clone().try_into().unwrap();
    for _ in 0..3 {
        copy_half(lists[0], memory, 1000, second, first);
        fill(lists[1], memory, &[1], 1000, NONE, &[]);
        ok!(zeCommandListAppendBarrier(
            lists[1],
            NONE,
            0,
            ptr::null_mut()
        ));
        ok!(zeCommandListAppendSignalEvent(lists[1], first));
        wait(second);
        ok!(zeEventHostReset(first));
        ok!(zeEventHostReset(second));
    }
    lists.into_iter().for_each(destroy);
    context.free(memory);
}

/// The host waits for the fill before it signals what the copy waits for.
fn a_copy_after_the_host() {
    let context = Context::new();
    let (pool, memory) = (context.pool(2, false), context.alloc(Kind::Device, 2000));
    let lists = [context.immediate(0), context.immediate(0)];
    let [first, second]: [Event; 2] = pool.events.clone().try_into().unwrap();
    copy_half(lists[0], memory, 1000, second, first);
    fill(lists[1], memory, &[1], 1000, NONE, &[]);
    common::finish(&context, lists[1]);
    ok!(zeEventHostSignal(first));
    wait(second);
    lists.into_iter().for_each(destroy);
    context.free(memory);
}

/// Two threads submit a copy and the fill that it waits for at the same time.
fn a_copy_beside_what_it_waits_for() {
    const ROUNDS: usize = 2000;
    let context = Context::new();
    let (pool, memory) = (context.pool(2, false), context.alloc(Kind::Device, 2000));
    let [filled, copied] = [0, 1].map(|index: usize| pool.events[index] as usize);
    let lists = [(); 2].map(|()| context.immediate(0) as usize);
    let (from, round) = (memory as usize, AtomicUsize::new(0));
    let fills = || {
        for number in 1..=ROUNDS {
            while round.load(Ordering::Acquire) < number {
                thread::yield_now();
            }
            let (begin, delay) = (Instant::now(), number as u64 % 100);
            while begin.elapsed() < Duration::from_micros(delay) {
                spin_loop();
            }
            let (list, event) = (lists[0] as List, filled as Event);
            fill(list, from as Memory, &[1], 1000, event, &[]);
        }
    };
    let copies = || {
        for number in 1..=ROUNDS {
            round.store(number, Ordering::Release);
            let (list, event) = (lists[1] as List, copied as Event);
            let to = (from + 1000) as Memory;
            copy(list, to, from as Memory, 1000, event, &[filled as Event]);
            wait(event);
            ok!(zeEventHostReset(filled as Event));
            ok!(zeEventHostReset(event));
        }
    };
    thread::scope(|scope| {
        scope.spawn(fills);
        scope.spawn(copies);
    });
    lists.into_iter().for_each(|list| destroy(list as List));
    context.free(memory);
}

fn shared_memory_after_waits() {
    let context = Context::new();
    for kind in [Kind::Shared, Kind::Host] {
        let (queue, memory) = (context.queue(), context.alloc(kind, 1000));
        let mut list = context.list(0);
        fill(list, memory, &[5], 1000, NONE, &[]);
        ok!(zeCommandListClose(list));
        for _ in 0..3 {
            common::bytes_mut(memory, 1000).fill(0);
            ok!(zeCommandQueueExecuteCommandLists(
                queue,
                1,
                &raw mut list,
                ptr::null_mut()
            ));
            ok!(zeCommandQueueSynchronize(queue, 60 * SECOND));
            assert_eq!(bytes(memory, 1000), [5; 1000]);
        }
        destroy(list);
        ok!(zeCommandQueueDestroy(queue));
        context.free(memory);
    }
}

/// The host has waited for a command whose timestamp it has.
fn shared_memory_after_timestamps() {
    let context = Context::new();
    let (list, memory) = (context.immediate(0), context.alloc(Kind::Shared, MIB));
    let pool = context.pool(1, true);
    for value in 1..5 {
        fill(list, memory, &[value], MIB, pool.events[0], &[]);
        let mut result = sys::ze_kernel_timestamp_result_t::default();
        while ze!(zeEventQueryKernelTimestamp(pool.events[0], &raw mut result))
            == sys::ZE_RESULT_NOT_READY
        {
            thread::yield_now();
        }
        assert!(bytes(memory, MIB).iter().all(|byte| *byte == value));
        ok!(zeEventHostReset(pool.events[0]));
    }
    destroy(list);
    context.free(memory);
}

/// Each has its signal where one of a command in flight may have been.
fn resets_of_events_that_are_new() {
    let context = Context::new();
    let (event, counter_pool) = counter_event(common::library(), context.0);
    let (list, memory) = (context.immediate(0), context.alloc(Kind::Device, 64));
    for _ in 0..64 {
        ok!(zeCommandListAppendBarrier(list, NONE, 0, ptr::null_mut()));
        fill(list, memory, &[1], 64, event, &[]);
    }
    let pool = context.pool(64, false);
    for event in &pool.events {
        ok!(zeEventHostReset(*event));
    }
    wait(event);
    destroy(list);
    ok!(zeEventDestroy(event));
    ok!(zeEventPoolDestroy(counter_pool));
    context.free(memory);
}

fn many_allocations_of_all_sizes() {
    let context = Context::new();
    let list = context.immediate(0);
    for size in (1..300).chain([4095, 4096, 4097, MIB - 1, 5 * MIB + 3]) {
        for alignment in [0, 1, 64, 4096, 1 << 20] {
            let memory = context.try_alloc(Kind::Device, size, alignment).unwrap();
            assert!((memory as usize).is_multiple_of(alignment.max(1)));
            fill(list, memory, &[1], size, NONE, &[]);
            common::finish(&context, list);
            context.free(memory);
        }
        let memory = context.alloc(Kind::Shared, size);
        common::bytes_mut(memory, size).fill(1);
        context.free(memory);
    }
    destroy(list);
}

fn parts_of_one_allocation() {
    let context = Context::new();
    let (memory, lists) = (
        context.alloc(Kind::Device, 100),
        [context.immediate(0), context.immediate(0)],
    );
    for (index, list) in lists.into_iter().enumerate() {
        fill(
            list,
            memory.wrapping_byte_add(50 * index),
            &[1],
            50,
            NONE,
            &[],
        );
    }
    for list in lists {
        common::finish(&context, list);
        destroy(list);
    }
    context.free(memory);
}

/// The left half of each row to the right one.
fn a_box_beside_another_one() {
    let context = Context::new();
    let (list, memory) = (context.immediate(0), context.alloc(Kind::Shared, 1000));
    common::bytes_mut(memory, 1000).fill(1);
    let [from, to] = [0, 50].map(|left| sys::ze_copy_region_t {
        originX: left,
        width: 50,
        height: 10,
        depth: 1,
        ..Default::default()
    });
    ok!(zeCommandListAppendMemoryCopyRegion(
        list,
        memory,
        &raw const to,
        100,
        0,
        memory,
        &raw const from,
        100,
        0,
        NONE,
        0,
        ptr::null_mut()
    ));
    common::finish(&context, list);
    assert_eq!(bytes(memory, 1000), [1; 1000]);
    destroy(list);
    context.free(memory);
}

fn timestamps_in_memory() {
    let context = Context::new();
    let (list, memory) = (context.immediate(0), context.alloc(Kind::Device, 256));
    let mut pool = context.pool(2, true);
    ok!(zeCommandListAppendWriteGlobalTimestamp(
        list,
        memory.cast(),
        pool.events[0],
        0,
        ptr::null_mut()
    ));
    let offset = 64;
    for offsets in [ptr::null(), &raw const offset] {
        ok!(zeCommandListAppendQueryKernelTimestamps(
            list,
            1,
            pool.events.as_mut_ptr(),
            memory.wrapping_byte_add(64),
            offsets,
            NONE,
            1,
            pool.events.as_mut_ptr()
        ));
        common::finish(&context, list);
    }
    destroy(list);
    context.free(memory);
}

/// They wait for the host, and the checker forgets the first of them.
fn more_commands_than_are_remembered() {
    let context = Context::new();
    let (memory, pool) = (context.alloc(Kind::Device, 1000), context.pool(1, false));
    let list = context.immediate(common::IN_ORDER_QUEUE);
    for _ in 0..1000 {
        fill(list, memory, &[1], 1000, NONE, &pool.events);
    }
    ok!(zeEventHostSignal(pool.events[0]));
    common::finish(&context, list);
    destroy(list);
    context.free(memory);
}

fn a_copy_between_contexts() {
    let contexts = [Context::new(), Context::new()];
    let memory = contexts
        .each_ref()
        .map(|context| context.alloc(Kind::Shared, 100));
    common::bytes_mut(memory[1], 100).fill(4);
    let list = contexts[0].immediate(0);
    ok!(zeCommandListAppendMemoryCopyFromContext(
        list,
        memory[0],
        contexts[1].0,
        memory[1],
        100,
        NONE,
        0,
        ptr::null_mut()
    ));
    common::finish(&contexts[0], list);
    assert_eq!(bytes(memory[0], 100), [4; 100]);
    destroy(list);
    for (context, memory) in contexts.iter().zip(memory) {
        context.free(memory);
    }
}
