//! Programs whose commands, or host code beside them, are in no order.

use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::extensions;

use crate::common::{
    self, Context, Event, Kind, List, Memory, NONE, SECOND, copy, destroy, fill, wait,
};
use crate::faulty::{read, with, write};
use crate::gallery::{Program, copy_half};

pub const PROGRAMS: &[Program] = &[
    (
        "host_reads_before_it_waits",
        &["race"],
        host_reads_before_it_waits,
    ),
    (
        "host_reads_timestamps_before_it_waits",
        &["race"],
        host_reads_timestamps_before_it_waits,
    ),
    (
        "host_writes_where_a_copy_writes",
        &["race"],
        host_writes_where_a_copy_writes,
    ),
    ("fills_of_two_lists", &["race"], fills_of_two_lists),
    (
        "copy_after_another_signal",
        &["race"],
        copy_after_another_signal,
    ),
    (
        "copy_before_the_host_waits",
        &["race"],
        copy_before_the_host_waits,
    ),
    ("copy_without_a_barrier", &["race"], copy_without_a_barrier),
    ("copy_onto_its_source", &["race"], copy_onto_its_source),
    (
        "wait_for_the_wrong_event",
        &["race"],
        wait_for_the_wrong_event,
    ),
    ("lists_of_two_queues", &["race"], lists_of_two_queues),
    (
        "free_before_the_wait",
        &["free-in-use"],
        free_before_the_wait,
    ),
    (
        "free_of_memory_in_place_before_the_wait",
        &["free-in-use"],
        free_of_memory_in_place_before_the_wait,
    ),
    (
        "event_is_reset_too_early",
        &["event-in-use"],
        event_is_reset_too_early,
    ),
];

fn host_reads_before_it_waits() {
    with(Kind::Shared, |context, memory| {
        let list = context.immediate(0);
        fill(list, memory, &[1], 1000, NONE, &[]);
        read(memory, 1);
        common::finish(context, list);
        destroy(list);
    });
}

fn host_reads_timestamps_before_it_waits() {
    with(Kind::Shared, |context, memory| {
        let (list, pool) = (context.immediate(0), context.pool(1, true));
        let mut event = pool.events[0];
        fill(list, memory, &[1], 1000, event, &[]);
        wait(event);
        ok!(zeCommandListAppendQueryKernelTimestamps(
            list,
            1,
            &raw mut event,
            memory,
            ptr::null(),
            NONE,
            0,
            ptr::null_mut()
        ));
        read(memory, 1);
        common::finish(context, list);
        destroy(list);
    });
}

fn host_writes_where_a_copy_writes() {
    with(Kind::Host, |context, memory| {
        let (list, from) = (context.immediate(0), [0_u8; 100]);
        copy(list, memory, from.as_ptr().cast(), 100, NONE, &[]);
        // The rest of the memory is the host's.
        write(memory, 200);
        common::finish(context, list);
        copy(list, memory, from.as_ptr().cast(), 100, NONE, &[]);
        write(memory, 50);
        common::finish(context, list);
        destroy(list);
    });
}

fn fills_of_two_lists() {
    with(Kind::Device, |context, memory| {
        let lists = [context.immediate(0), context.immediate(0)];
        for list in lists {
            fill(list, memory, &[1], 10, NONE, &[]);
        }
        for list in lists {
            common::finish(context, list);
            destroy(list);
        }
    });
}

/// The copy waits for a command that does not follow the fill.
fn copy_after_another_signal() {
    with(Kind::Device, |context, memory| {
        let pool = context.pool(2, false);
        let lists = [(); 3].map(|()| context.immediate(0));
        let [first, second]: [Event; 2] = pool.events.clone().try_into().unwrap();
        copy_half(lists[0], memory, 500, second, first);
        fill(lists[1], memory, &[1], 500, NONE, &[]);
        ok!(zeCommandListAppendSignalEvent(lists[2], first));
        wait(second);
        for list in lists {
            common::finish(context, list);
            destroy(list);
        }
    });
}

/// The host signals what the copy waits for before it has waited for the fill.
fn copy_before_the_host_waits() {
    with(Kind::Device, |context, memory| {
        let pool = context.pool(2, false);
        let lists = [context.immediate(0), context.immediate(0)];
        let [first, second]: [Event; 2] = pool.events.clone().try_into().unwrap();
        copy_half(lists[0], memory, 500, second, first);
        fill(lists[1], memory, &[1], 500, NONE, &[]);
        ok!(zeEventHostSignal(first));
        wait(second);
        for list in lists {
            common::finish(context, list);
            destroy(list);
        }
    });
}

fn copy_without_a_barrier() {
    with(Kind::Device, |context, memory| {
        let (list, mut to) = (context.immediate(0), [0_u8; 10]);
        fill(list, memory, &[1], 1000, NONE, &[]);
        copy(list, to.as_mut_ptr().cast(), memory, 10, NONE, &[]);
        common::finish(context, list);
        destroy(list);
    });
}

fn copy_onto_its_source() {
    with(Kind::Device, |context, memory| {
        let list = context.immediate(0);
        fill(list, memory, &[1], 1000, NONE, &[]);
        common::finish(context, list);
        for (distance, length) in [(0, 1000), (500, 500), (499, 500)] {
            let to = memory.wrapping_byte_add(distance);
            copy(list, to, memory, length, NONE, &[]);
            common::finish(context, list);
        }
        destroy(list);
    });
}

fn wait_for_the_wrong_event() {
    with(Kind::Device, |context, memory| {
        let (pool, lists) = (
            context.pool(3, false),
            [context.immediate(0), context.immediate(0)],
        );
        let [first, second, done]: [Event; 3] = pool.events.clone().try_into().unwrap();
        fill(lists[0], memory, &[1], 10, first, &[]);
        fill(
            lists[0],
            memory.wrapping_byte_add(10),
            &[1],
            10,
            second,
            &[],
        );
        fill(lists[1], memory, &[1], 10, done, &[second]);
        wait(first);
        wait(done);
        lists.into_iter().for_each(destroy);
    });
}

/// Executes a closed list of one fill.
fn execute(queue: sys::ze_command_queue_handle_t, context: &Context, memory: Memory) -> List {
    let mut list = context.list(0);
    fill(list, memory, &[1], 10, NONE, &[]);
    ok!(zeCommandListClose(list));
    ok!(zeCommandQueueExecuteCommandLists(
        queue,
        1,
        &raw mut list,
        ptr::null_mut()
    ));
    list
}

fn lists_of_two_queues() {
    with(Kind::Device, |context, memory| {
        let queues = [context.queue(), context.queue()];
        let lists = queues.map(|queue| execute(queue, context, memory));
        for queue in queues {
            ok!(zeCommandQueueSynchronize(queue, 60 * SECOND));
            ok!(zeCommandQueueDestroy(queue));
        }
        lists.into_iter().for_each(destroy);
    });
}

fn free_before_the_wait() {
    let context = Context::new();
    let (list, memory) = (context.immediate(0), context.alloc(Kind::Device, 1000));
    fill(list, memory, &[1], 1000, NONE, &[]);
    context.free(memory);
    common::finish(&context, list);
    destroy(list);
}

/// Memory of the program, which may use it for something else after the free.
fn free_of_memory_in_place_before_the_wait() {
    let context = Context::new();
    let program = vec![0_u8; 3 * 4096];
    let pages = program.as_ptr().addr().next_multiple_of(4096) as Memory;
    let memory = extensions::ze_external_memmap_sysmem_ext_desc_t {
        stype: extensions::ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC,
        pNext: ptr::null(),
        pSystemMemory: pages,
        size: 8192,
    };
    let mut desc = common::host_desc();
    desc.pNext = (&raw const memory).cast();
    let (list, mut pointer) = (context.immediate(0), ptr::null_mut());
    ok!(zeMemAllocHost(
        context.0,
        &raw const desc,
        8192,
        0,
        &raw mut pointer
    ));
    fill(list, pointer, &[1], 8192, NONE, &[]);
    context.free(pointer);
    common::finish(&context, list);
    destroy(list);
}

fn event_is_reset_too_early() {
    with(Kind::Device, |context, memory| {
        let (pool, list) = (context.pool(2, false), context.immediate(0));
        fill(list, memory, &[1], 10, pool.events[1], &pool.events[..1]);
        ok!(zeEventHostReset(pool.events[1]));
        ok!(zeEventHostSignal(pool.events[0]));
        common::finish(context, list);
        destroy(list);
    });
}
