//! Lists, queues, events and fences that a child inherits.

use std::ptr;

use level_zero_sys as sys;
use sys::{ZE_RESULT_SUCCESS as OK, ze_result_t as Code};

use crate::children::in_child;
use crate::common::{self, Context, Kind, List, MIB, NONE, bytes};
use crate::process::{alone, alone_with};
use crate::{Shared, beside, forks, recorded};

fn submit(
    queue: sys::ze_command_queue_handle_t,
    list: List,
    fence: sys::ze_fence_handle_t,
) -> Code {
    let mut list = list;
    ze!(zeCommandQueueExecuteCommandLists(
        queue,
        1,
        &raw mut list,
        fence
    ))
}

#[test]
fn commands_in_flight_count_as_complete_in_a_child() {
    alone("objects::forks_with_commands_in_flight");
}

#[test]
#[ignore = "run by commands_in_flight_count_as_complete_in_a_child"]
fn forks_with_commands_in_flight() {
    const FOR_EVER: u64 = u64::MAX;
    let context = Context::new();
    let pool = context.pool(4, false);
    let [gate, given, idle, set] = pool.events[..] else {
        unreachable!()
    };
    ok!(zeEventHostSignal(set));
    let memory = context.alloc(Kind::Shared, MIB);
    let (list, recorded, queue) = (context.immediate(0), context.list(0), context.queue());
    common::fill(recorded, memory, &[6], 64, NONE, &[]);
    ok!(zeCommandListClose(recorded));
    let desc = sys::ze_fence_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_FENCE_DESC,
        ..Default::default()
    };
    let mut fence = ptr::null_mut();
    ok!(zeFenceCreate(queue, &raw const desc, &raw mut fence));
    // All commands wait for `gate`.
    let gated = context.list(0);
    common::fill(gated, memory, &[5], 64, NONE, &[gate]);
    ok!(zeCommandListClose(gated));
    common::fill(list, memory, &[5], MIB, given, &[gate]);
    assert_eq!(submit(queue, gated, fence), OK);
    in_child(|| {
        common::finish(&context, list);
        ok!(zeCommandQueueSynchronize(queue, FOR_EVER));
        ok!(zeEventHostSynchronize(given, FOR_EVER));
        ok!(zeFenceHostSynchronize(fence, FOR_EVER));
        // Events that no command was to set are unchanged.
        assert!(!common::is_set(gate) && !common::is_set(idle) && common::is_set(set));
        // All objects work.
        ok!(zeEventHostReset(given));
        assert!(!common::is_set(given));
        ok!(zeFenceReset(fence));
        common::fill(list, memory, &[7], MIB, given, &[idle]);
        assert!(!common::is_set(given));
        ok!(zeEventHostSignal(idle));
        common::wait(given);
        assert!(bytes(memory, MIB).iter().all(|byte| *byte == 7));
        assert_eq!(submit(queue, recorded, fence), OK);
        ok!(zeFenceHostSynchronize(fence, FOR_EVER));
        assert_eq!(bytes(memory, 65), [[6; 64].as_slice(), &[7]].concat());
        for list in [list, recorded, gated] {
            common::destroy(list);
        }
        ok!(zeFenceDestroy(fence));
        ok!(zeCommandQueueDestroy(queue));
        drop(pool);
        true
    });
}

#[test]
fn a_child_waits_for_a_queue_without_the_commands_behind_it() {
    alone_with(
        "objects::forks_with_commands_behind_a_queue",
        &[("ZEUSM_CPU_ENGINES", "1")],
    );
}

#[test]
#[ignore = "run by a_child_waits_for_a_queue_without_the_commands_behind_it"]
fn forks_with_commands_behind_a_queue() {
    let context = Context::new();
    let pool = context.pool(1, false);
    let gate = pool.events[0];
    let memory = context.alloc(Kind::Shared, 64);
    let (free, behind) = (context.queue(), context.queue());
    let [list, gated] = [&[][..], &[gate]].map(|waits| {
        let list = context.list(0);
        common::fill(list, memory, &[1], 64, NONE, waits);
        ok!(zeCommandListClose(list));
        list
    });
    for _ in 0..10 {
        assert_eq!(submit(free, list, ptr::null_mut()), OK);
    }
    let waits_for_its_own = || {
        assert_eq!(submit(free, list, ptr::null_mut()), OK);
        assert_eq!(submit(behind, gated, ptr::null_mut()), OK);
        let waited = ze!(zeCommandQueueSynchronize(free, common::SECOND));
        ok!(zeEventHostSignal(gate));
        ok!(zeCommandQueueSynchronize(behind, u64::MAX));
        ok!(zeEventHostReset(gate));
        waited == OK
    };
    assert!(waits_for_its_own());
    in_child(waits_for_its_own);
    [list, gated].into_iter().for_each(common::destroy);
    for queue in [free, behind] {
        ok!(zeCommandQueueDestroy(queue));
    }
}

#[test]
fn a_child_uses_lists_and_events_that_other_threads_were_using() {
    alone("objects::forks_beside_users_of_the_same");
}

#[test]
#[ignore = "run by a_child_uses_lists_and_events_that_other_threads_were_using"]
fn forks_beside_users_of_the_same() {
    let context = Context::new();
    let pool = context.pool(1, false);
    let memory = context.alloc(Kind::Shared, MIB);
    let (list, recorded, queue) = (context.immediate(0), context.list(0), context.queue());
    let shared = Shared((list, recorded, queue, pool.events[0], memory));
    let reuse = || {
        let (_, recorded, _, _, memory) = *shared.get();
        ok!(zeCommandListReset(recorded));
        common::fill(recorded, memory, &[1], 64, NONE, &[]);
        ok!(zeCommandListClose(recorded));
    };
    let run = || {
        let (list, recorded, queue, event, memory) = *shared.get();
        ok!(zeEventHostReset(event));
        common::fill(list, memory, &[2], 64, event, &[]);
        common::wait(event);
        // The other thread may have reset it, so it may be open.
        submit(queue, recorded, ptr::null_mut());
        ok!(zeCommandQueueSynchronize(queue, u64::MAX));
    };
    beside(&[&reuse, &run], forks(300), |_| {
        in_child(|| {
            run();
            reuse();
            assert_eq!(submit(queue, recorded, ptr::null_mut()), OK);
            ok!(zeCommandQueueSynchronize(queue, u64::MAX));
            common::destroy(list);
            common::destroy(recorded);
            ok!(zeCommandQueueDestroy(queue));
            true
        });
    });
    drop(pool);
}

#[test]
fn a_child_executes_the_graph_of_its_parent() {
    alone("objects::forks_with_a_graph");
}

#[test]
#[ignore = "run by a_child_executes_the_graph_of_its_parent"]
fn forks_with_a_graph() {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, MIB);
    let list = context.immediate(0);
    let graph = recorded::record(list, || {
        common::fill(list, memory, &[7], MIB, NONE, &[]);
    });
    let executable = recorded::instantiate(graph).unwrap();
    let execute = || {
        common::bytes_mut(memory, MIB).fill(0);
        assert_eq!(recorded::append(list, executable, NONE, &[]), OK);
        common::finish(&context, list);
        assert!(bytes(memory, MIB).iter().all(|byte| *byte == 7));
    };
    execute();
    // In the child of a fork beside an execution, too: that one counts as complete there.
    assert_eq!(recorded::append(list, executable, NONE, &[]), OK);
    in_child(|| {
        execute();
        let again = recorded::instantiate(graph).unwrap();
        assert_eq!(recorded::append(list, again, NONE, &[]), OK);
        common::finish(&context, list);
        recorded::destroy_executable(again) == OK
    });
    common::finish(&context, list);
    execute();
    // A child whose parent captures goes on with that, on its own.
    assert_eq!(recorded::begin(list), OK);
    common::fill(list, memory, &[1], MIB, NONE, &[]);
    in_child(|| {
        let (graph, code) = recorded::end(list);
        assert_eq!(code, OK);
        let executable = recorded::instantiate(graph).unwrap();
        assert_eq!(recorded::append(list, executable, NONE, &[]), OK);
        common::finish(&context, list);
        bytes(memory, MIB).iter().all(|byte| *byte == 1)
    });
    assert_eq!(recorded::end(list).1, OK);
    assert!(bytes(memory, MIB).iter().all(|byte| *byte == 7));
}
