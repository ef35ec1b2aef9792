//! The group that computes and the one that only copies.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;

use std::ptr;

use common::{Context, Kind, MIB, NONE, bytes, device};
use level_zero_sys as sys;

const COPY_GROUP: u32 = 1;

fn groups(room: u32) -> Vec<sys::ze_command_queue_group_properties_t> {
    let head = sys::ze_command_queue_group_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES,
        ..Default::default()
    };
    let (mut count, mut groups) = (room, vec![head; room as usize]);
    let place = if room == 0 {
        ptr::null_mut()
    } else {
        groups.as_mut_ptr()
    };
    ok!(zeDeviceGetCommandQueueGroupProperties(
        device(),
        &raw mut count,
        place
    ));
    groups.resize(count as usize, head);
    groups
}

fn queue_desc(ordinal: u32, index: u32) -> sys::ze_command_queue_desc_t {
    sys::ze_command_queue_desc_t {
        ordinal,
        index,
        ..common::queue_desc(0)
    }
}

fn regular_list(context: &Context, ordinal: u32) -> sys::ze_command_list_handle_t {
    let desc = sys::ze_command_list_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
        commandQueueGroupOrdinal: ordinal,
        ..Default::default()
    };
    let mut list = ptr::null_mut();
    ok!(zeCommandListCreate(
        context.0,
        device(),
        &raw const desc,
        &raw mut list
    ));
    list
}

#[test]
fn the_first_group_computes_and_the_second_only_copies() {
    assert_eq!(groups(0).len(), 2);
    assert_eq!(groups(1).len(), 1);
    assert_eq!(groups(9).len(), 2);
    let copy = sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY.0;
    let compute = sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE.0;
    let flags = groups(2);
    assert_eq!(flags[0].flags & (copy | compute), copy | compute);
    assert_eq!(flags[1].flags, copy);
    for group in groups(2) {
        assert!(group.numQueues >= 1 && group.maxMemoryFillPatternSize >= 128);
    }
}

#[test]
fn ordinals_and_indices_are_checked() {
    let context = Context::new();
    let mut list = ptr::null_mut();
    for (ordinal, index) in [
        (2, 0),
        (u32::MAX, 0),
        (0, groups(2)[0].numQueues),
        (COPY_GROUP, groups(2)[1].numQueues),
    ] {
        let desc = queue_desc(ordinal, index);
        let code = ze!(zeCommandListCreateImmediate(
            context.0,
            device(),
            &raw const desc,
            &raw mut list
        ));
        assert_eq!(
            code,
            sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
            "{ordinal} {index}"
        );
    }
}

#[test]
fn both_groups_copy_and_fill_with_any_pattern() {
    let context = Context::new();
    let (a, b) = (
        context.alloc(Kind::Shared, MIB),
        context.alloc(Kind::Device, MIB),
    );
    for ordinal in 0..2 {
        let list = context.immediate_on(device(), &queue_desc(ordinal, 0));
        for length in [1, 2, 16, 128] {
            let pattern: Vec<u8> = (0..length).map(|at| at as u8 ^ 0x5a).collect();
            let done = context.pool(2, false);
            common::fill(list, b, &pattern, MIB, done.events[0], &[]);
            common::copy(list, a, b, MIB, done.events[1], &done.events[..1]);
            common::wait(done.events[1]);
            let mut parts = bytes(a, MIB).chunks(length);
            assert!(parts.all(|part| part == pattern), "{length} bytes");
        }
        common::destroy(list);
    }
    context.free(a);
    context.free(b);
}

#[test]
fn a_list_executes_on_queues_of_its_group() {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 64);
    for ordinal in 0..2 {
        let mut list = regular_list(&context, ordinal);
        common::fill(list, memory, &[ordinal as u8 + 1], 64, NONE, &[]);
        ok!(zeCommandListClose(list));
        let [own, other] = [ordinal, 1 - ordinal].map(|it| context.queue_of(&queue_desc(it, 0)));
        let execute = |queue, list| {
            ze!(zeCommandQueueExecuteCommandLists(
                queue,
                1,
                list,
                ptr::null_mut()
            ))
        };
        assert_eq!(
            execute(other, &raw mut list),
            sys::ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE
        );
        assert_eq!(execute(own, &raw mut list), common::OK);
        ok!(zeCommandQueueSynchronize(own, u64::MAX));
        assert_eq!(bytes(memory, 64), [ordinal as u8 + 1; 64]);
        ok!(zeCommandQueueDestroy(own));
        ok!(zeCommandQueueDestroy(other));
        common::destroy(list);
    }
    context.free(memory);
}
