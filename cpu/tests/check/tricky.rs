//! Correct programs that look faulty.

use std::ptr;

use crate::common::{
    self, Context, Event, IN_ORDER_QUEUE, Kind, NONE, SECOND, bytes, bytes_mut, copy, destroy,
    fill, wait,
};
use crate::gallery::Program;
use crate::orders::{execute, fence, synchronize};

pub const PROGRAMS: &[Program] = &[
    ("reuse_of_freed_addresses", &[], reuse_of_freed_addresses),
    ("parts_in_two_queues", &[], parts_in_two_queues),
    ("host_beside_a_copy", &[], host_beside_a_copy),
    ("events_across_queues", &[], events_across_queues),
    ("events_are_reused", &[], events_are_reused),
    ("fences_order_the_host", &[], fences_order_the_host),
    ("diamond_of_events", &[], diamond_of_events),
    ("free_after_a_later_wait", &[], free_after_a_later_wait),
    (
        "host_writes_before_it_signals",
        &[],
        host_writes_before_it_signals,
    ),
    (
        "wait_before_the_signal_is_submitted",
        &[],
        wait_before_the_signal_is_submitted,
    ),
    ("parts_are_reused", &[], parts_are_reused),
];

/// Some kinds of memory, more often than freed addresses are kept.
fn reuse_of_freed_addresses() {
    let context = Context::new();
    let list = context.immediate(IN_ORDER_QUEUE);
    for index in 0..5000 {
        let kind = [Kind::Device, Kind::Shared][index % 2];
        let (size, value) = (1 + index % 5000, (index % 250) as u8);
        let memory = context.alloc(kind, size);
        if index % 5 == 0 {
            fill(list, memory, &[value], size, NONE, &[]);
            common::finish(&context, list);
        }
        if kind == Kind::Shared {
            bytes_mut(memory, size).fill(value);
        }
        context.free(memory);
    }
    destroy(list);
}

fn parts_in_two_queues() {
    let context = Context::new();
    let memory = context.alloc(Kind::Device, 1000);
    let (queues, mut to) = ([context.queue(), context.queue()], [0_u8; 500]);
    for _ in 0..5 {
        let lists = [
            execute(queues[0], &context, ptr::null_mut(), |list| {
                fill(list, memory, &[1], 500, NONE, &[]);
                ok!(zeCommandListAppendBarrier(list, NONE, 0, ptr::null_mut()));
                copy(list, to.as_mut_ptr().cast(), memory, 500, NONE, &[]);
            }),
            execute(queues[1], &context, ptr::null_mut(), |list| {
                let half = memory.wrapping_byte_add(500);
                fill(list, half, &[2], 500, NONE, &[]);
            }),
        ];
        queues.into_iter().for_each(synchronize);
        assert_eq!(to, [1; 500]);
        lists.into_iter().for_each(destroy);
    }
    for queue in queues {
        ok!(zeCommandQueueDestroy(queue));
    }
    context.free(memory);
}

fn host_beside_a_copy() {
    let context = Context::new();
    for kind in [Kind::Shared, Kind::Host] {
        let (list, memory) = (context.immediate(0), context.alloc(kind, 1000));
        fill(list, memory, &[1], 500, NONE, &[]);
        bytes_mut(memory.wrapping_byte_add(500), 500).fill(2);
        assert_eq!(bytes(memory.wrapping_byte_add(500), 500), [2; 500]);
        common::finish(&context, list);
        assert_eq!(bytes(memory, 500), [1; 500]);
        destroy(list);
        context.free(memory);
    }
}

/// The host waits for the last queue only.
fn events_across_queues() {
    let context = Context::new();
    let (pool, memory) = (context.pool(2, false), context.alloc(Kind::Device, 1000));
    let [first, second]: [Event; 2] = pool.events.clone().try_into().unwrap();
    let (queues, mut to) = ([0; 3].map(|_| context.queue()), [0_u8; 1000]);
    let lists = [
        execute(queues[0], &context, ptr::null_mut(), |list| {
            fill(list, memory, &[1], 1000, first, &[]);
        }),
        execute(queues[1], &context, ptr::null_mut(), |list| {
            fill(list, memory, &[2], 1000, second, &[first]);
        }),
        execute(queues[2], &context, ptr::null_mut(), |list| {
            copy(list, to.as_mut_ptr().cast(), memory, 1000, NONE, &[second]);
        }),
    ];
    synchronize(queues[2]);
    assert_eq!(to, [2; 1000]);
    context.free(memory);
    lists.into_iter().for_each(destroy);
    for queue in queues {
        ok!(zeCommandQueueDestroy(queue));
    }
}

fn events_are_reused() {
    let context = Context::new();
    let (pool, memory) = (context.pool(1, false), context.alloc(Kind::Shared, 1000));
    let (list, event) = (context.immediate(0), pool.events[0]);
    for round in 0..50 {
        fill(list, memory, &[round], 1000, event, &[]);
        if round % 2 == 0 {
            wait(event);
        } else {
            common::finish(&context, list);
        }
        assert_eq!(bytes(memory, 1000), [round; 1000]);
        ok!(zeEventHostReset(event));
    }
    destroy(list);
    context.free(memory);
}

fn fences_order_the_host() {
    let context = Context::new();
    let (queue, memory) = (context.queue(), context.alloc(Kind::Shared, 1000));
    let fence = fence(queue);
    for round in 0..10 {
        let list = execute(queue, &context, fence, |list| {
            fill(list, memory, &[round], 1000, NONE, &[]);
        });
        ok!(zeFenceHostSynchronize(fence, 60 * SECOND));
        assert_eq!(bytes(memory, 1000), [round; 1000]);
        bytes_mut(memory, 1000).fill(0);
        ok!(zeFenceReset(fence));
        destroy(list);
    }
    ok!(zeFenceDestroy(fence));
    ok!(zeCommandQueueDestroy(queue));
    context.free(memory);
}

fn diamond_of_events() {
    let context = Context::new();
    let (pool, memory) = (context.pool(4, false), context.alloc(Kind::Device, 1000));
    let [top, left, right, end]: [Event; 4] = pool.events.clone().try_into().unwrap();
    let lists = [0; 4].map(|_| context.immediate(0));
    let (half, mut to) = (memory.wrapping_byte_add(500), [0_u8; 1000]);
    fill(lists[0], memory, &[1], 1000, top, &[]);
    fill(lists[1], memory, &[2], 500, left, &[top]);
    fill(lists[2], half, &[3], 500, right, &[top]);
    let place = to.as_mut_ptr().cast();
    copy(lists[3], place, memory, 1000, end, &[left, right]);
    wait(end);
    assert_eq!((to[0], to[999]), (2, 3));
    context.free(memory);
    lists.into_iter().for_each(destroy);
}

fn free_after_a_later_wait() {
    let context = Context::new();
    let (pool, list) = (context.pool(1, false), context.immediate(IN_ORDER_QUEUE));
    let memory = [0; 3].map(|_| context.alloc(Kind::Device, 1000));
    fill(list, memory[0], &[1], 1000, NONE, &[]);
    copy(list, memory[1], memory[0], 1000, NONE, &[]);
    fill(list, memory[2], &[1], 10, pool.events[0], &[]);
    wait(pool.events[0]);
    memory.into_iter().for_each(|memory| context.free(memory));
    destroy(list);
}

/// As a host task does: commands that wait for the host's signal are not yet in flight.
fn host_writes_before_it_signals() {
    let context = Context::new();
    let (pool, list) = (context.pool(2, false), context.immediate(0));
    let memory = [0; 2].map(|_| context.alloc(Kind::Shared, 1000));
    let [start, end]: [Event; 2] = pool.events.clone().try_into().unwrap();
    ok!(zeCommandListAppendBarrier(
        list,
        NONE,
        1,
        [start].as_mut_ptr()
    ));
    copy(list, memory[1], memory[0], 1000, end, &[]);
    for memory in memory {
        bytes_mut(memory, 1000).fill(9);
    }
    ok!(zeEventHostSignal(start));
    wait(end);
    assert_eq!(bytes(memory[1], 1000), [9; 1000]);
    destroy(list);
    memory.into_iter().for_each(|memory| context.free(memory));
}

/// The command that waits is submitted first, and is ordered all the same, as are those after it.
fn wait_before_the_signal_is_submitted() {
    let context = Context::new();
    let (pool, memory) = (context.pool(3, false), context.alloc(Kind::Device, 1000));
    let [first, second, third]: [Event; 3] = pool.events.clone().try_into().unwrap();
    let (lists, mut to) = ([0; 3].map(|_| context.immediate(0)), [0_u8; 1000]);
    fill(lists[0], memory, &[2], 500, second, &[first]);
    let place = to.as_mut_ptr().cast();
    copy(lists[1], place, memory, 1000, third, &[second]);
    fill(lists[2], memory, &[1], 1000, first, &[]);
    wait(third);
    assert_eq!((to[0], to[999]), (2, 1));
    context.free(memory);
    lists.into_iter().for_each(destroy);
}

/// As a pool does, with events instead of waits.
fn parts_are_reused() {
    let context = Context::new();
    let lists = [context.immediate(0), context.immediate(0)];
    let (pool, block) = (context.pool(20, false), context.alloc(Kind::Device, 4096));
    let mut last: Option<Event> = None;
    for (index, event) in pool.events.iter().enumerate() {
        // The part is given back by the command before, which used it in the other list.
        let part = block.wrapping_byte_add(1024 * (index / 2 % 4));
        let waits: Vec<_> = last.into_iter().collect();
        fill(lists[index % 2], part, &[1], 1024, *event, &waits);
        last = Some(*event);
    }
    wait(pool.events[19]);
    context.free(block);
    lists.into_iter().for_each(destroy);
}
