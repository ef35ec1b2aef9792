//! Priorities of queues and immediate lists.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, missing_docs)]

#[macro_use]
mod common;

use common::{Context, Event, Kind, OK, Queue, Result, device, direct};
use level_zero_sys as sys;

type Priority = sys::ze_command_queue_priority_t;

const PRIORITIES: [Priority; 3] = [
    sys::ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW,
    sys::ZE_COMMAND_QUEUE_PRIORITY_NORMAL,
    sys::ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH,
];

fn desc(priority: Priority) -> sys::ze_command_queue_desc_t {
    sys::ze_command_queue_desc_t {
        priority,
        ..common::queue_desc(0)
    }
}

/// When the command that set the event ended.
fn end(event: Event) -> u64 {
    let mut times = sys::ze_kernel_timestamp_result_t::default();
    ok!(zeEventQueryKernelTimestamp(event, &raw mut times));
    times.global.kernelEnd
}

/// Commands that wait for one event, the low priorities submitted first.
#[test]
fn of_the_commands_that_an_event_releases_those_of_high_priority_are_first() {
    const EACH: usize = 8;
    let context = Context::new();
    for round in 0..20 {
        let gate = context.pool(1, false);
        let ends = context.pool((PRIORITIES.len() * EACH) as u32, true);
        let memory = context.alloc(Kind::Host, 4096);
        let (mut lists, mut queues) = (Vec::new(), Vec::new());
        let order = PRIORITIES.iter().flat_map(|it| [*it; EACH]);
        for (priority, signal) in order.zip(&ends.events) {
            // Queues and immediate lists in turns.
            let of_queue = round % 2 == 0;
            let list = if of_queue {
                context.list(0)
            } else {
                context.immediate_on(device(), &desc(priority))
            };
            common::fill(list, memory, &[1], 64, *signal, &gate.events);
            if of_queue {
                let queue = context.queue_of(&desc(priority));
                let mut closed = list;
                ok!(zeCommandListClose(list));
                ok!(zeCommandQueueExecuteCommandLists(
                    queue,
                    1,
                    &raw mut closed,
                    std::ptr::null_mut()
                ));
                queues.push(queue);
            }
            lists.push(list);
        }
        ok!(zeEventHostSignal(gate.events[0]));
        ends.events.iter().for_each(|event| common::wait(*event));
        let ends: Vec<u64> = ends.events.iter().map(|event| end(*event)).collect();
        let [low, normal, high] = [0, 1, 2].map(|at| &ends[at * EACH..(at + 1) * EACH]);
        assert!(high.iter().max() <= normal.iter().min(), "round {round}");
        assert!(normal.iter().max() <= low.iter().min(), "round {round}");
        lists.into_iter().for_each(common::destroy);
        for queue in queues {
            ok!(zeCommandQueueSynchronize(queue, u64::MAX));
            ok!(zeCommandQueueDestroy(queue));
        }
        context.free(memory);
    }
}

#[test]
fn a_queue_and_a_list_tell_their_priority() {
    if !direct() {
        return; // Debian's loader does not have the functions.
    }
    type Of = unsafe extern "C" fn(Queue, *mut Priority) -> Result;
    let context = Context::new();
    for priority in PRIORITIES {
        let queue = context.queue_of(&desc(priority));
        let list = context.immediate_on(device(), &desc(priority));
        for (name, handle) in [
            (c"zeCommandQueueGetPriority", queue),
            (c"zeCommandListImmediateGetPriority", list.cast()),
        ] {
            let of: Of = unsafe { common::newer(name) };
            let mut found = sys::ze_command_queue_priority_t(77);
            assert_eq!(unsafe { of(handle, &raw mut found) }, OK);
            assert_eq!(found, priority);
        }
        ok!(zeCommandQueueDestroy(queue));
        common::destroy(list);
    }
}

/// SYCL waits for the last command of a list only.
#[test]
fn a_list_executes_its_commands_in_order() {
    const SIZE: usize = 32 * common::MIB;
    let context = Context::new();
    let events = context.pool(1, false);
    let memory = context.alloc(Kind::Shared, SIZE + 64);
    for device in common::devices() {
        for priority in PRIORITIES {
            let list = context.immediate_on(device, &desc(priority));
            for round in 1..10_u8 {
                common::fill(list, memory, &[round], SIZE, common::NONE, &[]);
                let other = memory.wrapping_byte_add(SIZE);
                common::fill(list, other, &[round], 64, events.events[0], &[]);
                common::wait(events.events[0]);
                assert_eq!(common::bytes(memory, SIZE)[SIZE - 1], round);
                ok!(zeEventHostReset(events.events[0]));
            }
            common::destroy(list);
        }
    }
    context.free(memory);
}
