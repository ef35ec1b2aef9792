//! Programs that use memory, events and objects too early, too late, or in the wrong context.

use std::ptr;
use std::thread;
use std::time::Duration;

use level_zero_sys as sys;

use crate::common::{self, Context, Event, Kind, Memory, NONE, SECOND, copy, destroy, fill, wait};
use crate::faulty::{read, with, write};
use crate::gallery::Program;

pub const PROGRAMS: &[Program] = &[
    (
        "queue_reads_what_another_writes",
        &["race"],
        queue_reads_what_another_writes,
    ),
    (
        "host_writes_before_the_fence",
        &["race"],
        host_writes_before_the_fence,
    ),
    (
        "wait_for_an_earlier_command",
        &["race"],
        wait_for_an_earlier_command,
    ),
    (
        "host_signals_and_writes_then",
        &["race"],
        host_signals_and_writes_then,
    ),
    (
        "event_is_reset_without_a_wait",
        &["event-in-use"],
        event_is_reset_without_a_wait,
    ),
    (
        "free_while_a_queue_works",
        &["free-in-use"],
        free_while_a_queue_works,
    ),
    (
        "free_before_the_host_signals",
        &["free-in-use"],
        free_before_the_host_signals,
    ),
    (
        "list_of_freed_memory_is_executed",
        &["use-after-free"],
        list_of_freed_memory_is_executed,
    ),
    (
        "copy_from_another_context",
        &["foreign-context"],
        copy_from_another_context,
    ),
    (
        "host_reads_one_byte_behind_a_page",
        &["out-of-bounds"],
        host_reads_one_byte_behind_a_page,
    ),
    ("copy_begins_before", &["out-of-bounds"], copy_begins_before),
    (
        "two_threads_free_the_same",
        &["invalid-free"],
        two_threads_free_the_same,
    ),
    (
        "copies_of_parts_of_unwritten_memory",
        &["uninitialised"],
        copies_of_parts_of_unwritten_memory,
    ),
    (
        "unwritten_memory_through_device_memory",
        &["uninitialised"],
        unwritten_memory_through_device_memory,
    ),
    (
        "a_queue_and_its_fence_are_never_destroyed",
        &["leak", "leak"],
        a_queue_and_its_fence_are_never_destroyed,
    ),
];

/// Executes a closed list of what `record` appends.
pub fn execute(
    queue: sys::ze_command_queue_handle_t,
    context: &Context,
    fence: sys::ze_fence_handle_t,
    record: impl FnOnce(super::common::List),
) -> super::common::List {
    let mut list = context.list(0);
    record(list);
    ok!(zeCommandListClose(list));
    ok!(zeCommandQueueExecuteCommandLists(
        queue,
        1,
        &raw mut list,
        fence
    ));
    list
}

pub fn synchronize(queue: sys::ze_command_queue_handle_t) {
    ok!(zeCommandQueueSynchronize(queue, 60 * SECOND));
}

pub fn fence(queue: sys::ze_command_queue_handle_t) -> sys::ze_fence_handle_t {
    let desc = sys::ze_fence_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_FENCE_DESC,
        ..Default::default()
    };
    let mut fence = ptr::null_mut();
    ok!(zeFenceCreate(queue, &raw const desc, &raw mut fence));
    fence
}

fn queue_reads_what_another_writes() {
    with(Kind::Device, |context, memory| {
        let (queues, mut to) = ([context.queue(), context.queue()], [0_u8; 10]);
        let lists = [
            execute(queues[0], context, ptr::null_mut(), |list| {
                fill(list, memory, &[1], 1000, NONE, &[]);
            }),
            execute(queues[1], context, ptr::null_mut(), |list| {
                copy(list, to.as_mut_ptr().cast(), memory, 10, NONE, &[]);
            }),
        ];
        queues.into_iter().for_each(synchronize);
        lists.into_iter().for_each(destroy);
        for queue in queues {
            ok!(zeCommandQueueDestroy(queue));
        }
    });
}

fn host_writes_before_the_fence() {
    with(Kind::Shared, |context, memory| {
        let queue = context.queue();
        let fence = fence(queue);
        let list = execute(queue, context, fence, |list| {
            fill(list, memory, &[1], 1000, NONE, &[]);
        });
        write(memory, 500);
        ok!(zeFenceHostSynchronize(fence, 60 * SECOND));
        write(memory, 500);
        ok!(zeFenceDestroy(fence));
        destroy(list);
        ok!(zeCommandQueueDestroy(queue));
    });
}

fn wait_for_an_earlier_command() {
    with(Kind::Shared, |context, memory| {
        let (pool, list) = (context.pool(2, false), context.immediate(0));
        let [first, second]: [Event; 2] = pool.events.clone().try_into().unwrap();
        fill(list, memory, &[1], 500, first, &[]);
        let half = memory.wrapping_byte_add(500);
        fill(list, half, &[1], 500, second, &[]);
        wait(first);
        read(memory, 999);
        wait(second);
        destroy(list);
    });
}

fn host_signals_and_writes_then() {
    with(Kind::Shared, |context, memory| {
        let (pool, list) = (context.pool(1, false), context.immediate(0));
        fill(list, memory, &[1], 1000, NONE, &pool.events);
        ok!(zeEventHostSignal(pool.events[0]));
        write(memory, 5);
        common::finish(context, list);
        destroy(list);
    });
}

/// Also after the command, as the host does not know its end.
fn event_is_reset_without_a_wait() {
    with(Kind::Device, |context, memory| {
        let (pool, list) = (context.pool(1, false), context.immediate(0));
        fill(list, memory, &[1], 10, pool.events[0], &[]);
        thread::sleep(Duration::from_millis(100));
        ok!(zeEventHostReset(pool.events[0]));
        common::finish(context, list);
        destroy(list);
    });
}

fn free_while_a_queue_works() {
    let context = Context::new();
    let (queue, memory) = (context.queue(), context.alloc(Kind::Shared, 1000));
    let list = execute(queue, &context, ptr::null_mut(), |list| {
        fill(list, memory, &[1], 1000, NONE, &[]);
    });
    context.free(memory);
    synchronize(queue);
    destroy(list);
    ok!(zeCommandQueueDestroy(queue));
}

fn free_before_the_host_signals() {
    let context = Context::new();
    let (pool, list) = (context.pool(1, false), context.immediate(0));
    let memory = context.alloc(Kind::Device, 1000);
    fill(list, memory, &[1], 1000, NONE, &pool.events);
    context.free(memory);
    ok!(zeEventHostSignal(pool.events[0]));
    common::finish(&context, list);
    destroy(list);
}

fn list_of_freed_memory_is_executed() {
    let context = Context::new();
    let memory = context.alloc(Kind::Device, 1000);
    let (queue, mut list) = (context.queue(), context.list(0));
    fill(list, memory, &[1], 1000, NONE, &[]);
    ok!(zeCommandListClose(list));
    context.free(memory);
    let code = ze!(zeCommandQueueExecuteCommandLists(
        queue,
        1,
        &raw mut list,
        ptr::null_mut()
    ));
    assert_eq!(code, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
    destroy(list);
    ok!(zeCommandQueueDestroy(queue));
}

fn copy_from_another_context() {
    let contexts = [Context::new(), Context::new()];
    let memory = contexts
        .each_ref()
        .map(|context| context.alloc(Kind::Shared, 100));
    common::bytes_mut(memory[1], 100).fill(1);
    let list = contexts[0].immediate(0);
    copy(list, memory[0], memory[1], 100, NONE, &[]);
    common::finish(&contexts[0], list);
    destroy(list);
    for (context, memory) in contexts.iter().zip(memory) {
        context.free(memory);
    }
}

fn host_reads_one_byte_behind_a_page() {
    let context = Context::new();
    let memory = context.alloc(Kind::Host, 4096);
    read(memory, 4095);
    read(memory, 4096);
    context.free(memory);
}

fn copy_begins_before() {
    with(Kind::Device, |context, memory| {
        let (list, to) = (context.immediate(0), &mut [0_u8; 20]);
        let code = ze!(zeCommandListAppendMemoryCopy(
            list,
            to.as_mut_ptr().cast(),
            memory.wrapping_byte_sub(8),
            20,
            NONE,
            0,
            ptr::null_mut()
        ));
        assert_ne!(code, common::OK);
        destroy(list);
    });
}

fn two_threads_free_the_same() {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 1000) as usize;
    let free = |context: &Context| ze!(zeMemFree(context.0, memory as Memory));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| free(&context));
        }
    });
}

/// Copies all of it to the host, `part` bytes at a time.
fn copy_out(context: &Context, memory: Memory, part: usize) {
    let (list, mut to) = (context.immediate(0), [0_u8; 1000]);
    for (index, part) in to.chunks_mut(part).enumerate() {
        let from = memory.wrapping_byte_add(4 * index % 1000);
        copy(list, part.as_mut_ptr().cast(), from, part.len(), NONE, &[]);
        common::finish(context, list);
    }
    destroy(list);
}

fn copies_of_parts_of_unwritten_memory() {
    with(Kind::Device, |context, memory| {
        let list = context.immediate(0);
        fill(list, memory, &[3], 996, NONE, &[]);
        common::finish(context, list);
        destroy(list);
        copy_out(context, memory, 4);
    });
}

fn unwritten_memory_through_device_memory() {
    let context = Context::new();
    let memory = [0; 2].map(|_| context.alloc(Kind::Device, 1000));
    let list = context.immediate(0);
    copy(list, memory[1], memory[0], 1000, NONE, &[]);
    common::finish(&context, list);
    destroy(list);
    copy_out(&context, memory[1], 1000);
    memory.into_iter().for_each(|memory| context.free(memory));
}

fn a_queue_and_its_fence_are_never_destroyed() {
    let context = Context::new();
    fence(context.queue());
}
