//! Graphs of copies and fills: what is recorded, how lists fork and join, and what executions do.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;
#[path = "common/graphs.rs"]
mod graphs;

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{
    Context, Event, Kind, List, MIB, Memory, NONE, OK, Result, bytes, bytes_mut, is_set, wait,
};
use level_zero_sys as sys;
use level_zero_sys::extensions::{self, *};
use proptest::collection::vec;
use proptest::prelude::*;

const INVALID: Result = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
const UNSUPPORTED: Result = extensions::ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED;
const EXTERNAL: u32 = extensions::ZE_EVENT_COUNTER_BASED_FLAG_GRAPH_EXTERNAL;
const SIZE: usize = 64;

/// In order, where the layer allows such a list. It is one of the second device; those of the first one fork and join below.
fn list(context: &Context) -> List {
    list_of(context, *common::queue_orders().last().unwrap())
}

fn list_of(context: &Context, flags: u32) -> List {
    let [_, cpu] = common::devices();
    context.immediate_on(cpu, &common::queue_desc(flags))
}

fn barrier(list: List, signal: Event, waits: &[Event]) -> Result {
    ze!(zeCommandListAppendBarrier(
        list,
        signal,
        waits.len() as u32,
        common::array(waits)
    ))
}

fn synchronize(list: List) -> Result {
    let function: extensions::ze_pfnCommandListHostSynchronize_t =
        unsafe { common::newer(c"zeCommandListHostSynchronize") };
    unsafe { function.unwrap()(list, u64::MAX) }
}

/// Appends an execution and waits for it.
fn execute(list: List, executable: graphs::Executable) {
    assert_eq!(graphs::append(list, executable, NONE, &[]), OK);
    assert_eq!(synchronize(list), OK);
}

/// The end of a test: what it has made is destroyed.
fn end(context: &Context, events: &[Event], lists: &[List], memory: &[Memory]) {
    for event in events {
        ok!(zeEventDestroy(*event));
    }
    lists.iter().for_each(|list| common::destroy(*list));
    memory.iter().for_each(|memory| context.free(*memory));
}

#[test]
fn a_device_announces_graphs_that_do_not_change() {
    let mut graphs = ze_record_replay_graph_ext_properties_t {
        stype: extensions::ZE_STRUCTURE_TYPE_RECORD_REPLAY_GRAPH_EXT_PROPERTIES,
        pNext: ptr::null_mut(),
        graphFlags: u32::MAX,
    };
    let mut properties = sys::ze_device_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        pNext: (&raw mut graphs).cast(),
        ..Default::default()
    };
    if common::knows_newer_flags() {
        ok!(zeDeviceGetProperties(common::device(), &raw mut properties));
        let immutable = extensions::ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_IMMUTABLE_GRAPH;
        assert_eq!(graphs.graphFlags, immutable);
    }
}

/// Nothing happens at the capture, and the same each time that the graph is executed.
#[test]
fn commands_are_executed_whenever_the_graph_is() {
    let context = Context::new();
    let (list, outside) = (list(&context), list_of(&context, 0));
    let (a, b) = (
        context.alloc(Kind::Shared, SIZE),
        context.alloc(Kind::Shared, SIZE),
    );
    bytes_mut(b, SIZE).fill(0);
    let graph = graphs::record(list, || {
        assert!(graphs::is_capturing(list) && !graphs::is_capturing(outside));
        common::copy(list, b, a, SIZE, NONE, &[]);
        common::fill(list, a, &[9], SIZE, NONE, &[]);
    });
    assert!(!graphs::is_capturing(list));
    assert_eq!(graphs::is_empty(graph), Ok(false));
    assert_eq!(graphs::primary(graph), Ok(list));
    let executable = graphs::instantiate(graph).unwrap();
    assert_eq!(graphs::source(executable), graph);
    assert_eq!(bytes(b, SIZE), [0; SIZE]);
    for round in 1..=100 {
        bytes_mut(a, SIZE).fill(round);
        let on = if round % 2 == 0 { list } else { outside };
        execute(on, executable);
        assert_eq!(bytes(b, SIZE), [round; SIZE]);
        assert_eq!(bytes(a, SIZE), [9; SIZE]);
    }
    common::fill(list, b, &[200], SIZE, NONE, &[]);
    assert_eq!(synchronize(list), OK);
    assert_eq!(bytes(b, SIZE), [200; SIZE], "the list submits again");
    assert_eq!(graphs::destroy_executable(executable), OK);
    assert_eq!(graphs::destroy(graph), OK);
    assert_eq!(graphs::is_empty(graph), Err(INVALID), "it is gone");
    end(&context, &[], &[list, outside], &[a, b]);
}

/// An execution begins behind its wait list, and its event is set when all is done.
#[test]
fn executions_wait_and_signal() {
    let context = Context::new();
    let list = list(&context);
    let pool = context.pool(2, false);
    let size = MIB;
    let memory = context.alloc(Kind::Shared, size);
    bytes_mut(memory, size).fill(0);
    let graph = graphs::record(list, || {
        common::fill(list, memory, &[5], size, NONE, &[]);
    });
    let executable = graphs::instantiate(graph).unwrap();
    for _ in 0..3 {
        let [gate, done] = [pool.events[0], pool.events[1]];
        assert_eq!(graphs::append(list, executable, done, &[gate]), OK);
        thread::yield_now();
        assert!(!is_set(done) && bytes(memory, 1) == [0]);
        ok!(zeEventHostSignal(gate));
        wait(done);
        assert!(bytes(memory, size).iter().all(|byte| *byte == 5));
        bytes_mut(memory, size).fill(0);
        [gate, done]
            .into_iter()
            .for_each(|event| ok!(zeEventHostReset(event)));
    }
    assert_eq!(graphs::destroy_executable(executable), OK);
    assert_eq!(graphs::destroy(graph), OK);
    common::destroy(list);
    context.free(memory);
}

/// A second execution follows the first one, even on another list, whose own commands are not ordered behind it.
#[test]
fn executions_of_one_instance_follow_each_other() {
    let context = Context::new();
    let lists = [list(&context), list(&context)];
    let pool = context.pool(1, false);
    let memory = context.alloc(Kind::Shared, SIZE);
    let graph = graphs::record(lists[0], || {
        common::fill(lists[0], memory, &[5], SIZE, NONE, &[]);
    });
    let executable = graphs::instantiate(graph).unwrap();
    let gate = pool.events[0];
    assert_eq!(graphs::append(lists[0], executable, NONE, &[gate]), OK);
    bytes_mut(memory, SIZE).fill(0);
    assert_eq!(graphs::append(lists[1], executable, NONE, &[]), OK);
    assert_eq!(bytes(memory, SIZE), [0; SIZE]);
    ok!(zeEventHostSignal(gate));
    assert_eq!(synchronize(lists[1]), OK);
    assert_eq!(bytes(memory, SIZE), [5; SIZE]);
    assert_eq!(graphs::destroy_executable(executable), OK);
    assert_eq!(graphs::destroy(graph), OK);
    end(&context, &[], &lists, &[memory]);
}

/// A list joins the capture when it waits for an event of it, and leaves it with the first one.
#[test]
fn lists_fork_and_join() {
    let context = Context::new();
    let orders = common::queue_orders().iter();
    let orders = orders.flat_map(|flags| common::devices().map(|device| (device, *flags)));
    for (device, flags) in orders {
        let list = || context.immediate_on(device, &common::queue_desc(flags));
        let [first, second, third] = [(); 3].map(|()| list());
        let [forked, again, joined, joined_again] = [(); 4].map(|()| graphs::counter(context.0, 0));
        let size = MIB / 4;
        let [a, b, c] = [(); 3].map(|()| context.alloc(Kind::Shared, size));
        let graph = graphs::record(first, || {
            common::fill(first, a, &[7], size, forked, &[]);
            common::copy(second, b, a, size, again, &[forked]);
            common::copy(third, c, b, size, joined_again, &[again]);
            assert!([first, second, third].map(graphs::is_capturing) == [true; 3]);
            let graphs = [first, second, third].map(|list| graphs::graph_of(list).unwrap());
            assert_eq!(graphs, [graphs[0]; 3]);
            assert_eq!(barrier(second, joined, &[joined_again]), OK);
            common::fill(first, a, &[3], size, NONE, &[joined]);
            assert_eq!(barrier(second, NONE, &[]), OK, "no work");
        });
        assert!([first, second, third].map(graphs::is_capturing) == [false; 3]);
        let executable = graphs::instantiate(graph).unwrap();
        for _ in 0..20 {
            for memory in [a, b, c] {
                bytes_mut(memory, size).fill(0);
            }
            execute(first, executable);
            for (memory, byte) in [(a, 3), (b, 7), (c, 7)] {
                assert!(bytes(memory, size).iter().all(|it| *it == byte));
            }
        }
        assert_eq!(graphs::destroy_executable(executable), OK);
        assert_eq!(graphs::destroy(graph), OK);
        let events = [forked, again, joined, joined_again];
        end(&context, &events, &[first, second, third], &[a, b, c]);
    }
}

#[test]
fn lists_at_one_place_are_different_lists() {
    let context = Context::new();
    let flags = *common::queue_orders().last().unwrap();
    let (first, memory) = (list_of(&context, flags), context.alloc(Kind::Shared, SIZE));
    let [forked, joined] = [(); 2].map(|()| graphs::counter(context.0, 0));
    assert_eq!(graphs::begin(first), OK);
    common::fill(first, memory, &[1], SIZE, forked, &[]);
    // Each is a line of its own, also where it takes the place of the one before.
    for byte in 0..20 {
        let other = list_of(&context, flags);
        common::fill(other, memory, &[byte], SIZE, joined, &[forked]);
        assert_eq!(ze!(zeCommandListDestroy(other)), OK);
    }
    assert_eq!(barrier(first, NONE, &[joined]), OK);
    let (graph, code) = graphs::end(first);
    assert_eq!(code, extensions::ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS);
    let path = std::env::temp_dir().join(format!("zeusm-lists-{}", std::process::id()));
    assert_eq!(graphs::dump(graph, path.to_str().unwrap(), true), OK);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(text.matches("subgraph").count(), 21);
    assert_eq!(graphs::destroy(graph), OK);
    end(&context, &[forked, joined], &[first], &[memory]);
}

#[test]
fn a_chain_of_extensions_is_refused_as_that_of_a_copy_is() {
    let context = Context::new();
    let list = list(&context);
    let mut chained = sys::ze_base_desc_t::default();
    let chain = (&raw mut chained).cast_const().cast();
    let refused = sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    assert_eq!(graphs::begin_with(list, chain), refused);
    assert!(!graphs::is_capturing(list));
    let graph = graphs::record(list, || ());
    assert_eq!(graphs::instantiate_with(graph, chain), Err(refused));
    assert_eq!(graphs::destroy(graph), OK);
    end(&context, &[], &[list], &[]);
}

/// Not even if the event that it waits for is set, as a regular one is from the last execution on.
#[test]
fn a_fork_does_not_begin_before_the_graph() {
    let context = Context::new();
    let lists = [list(&context), list(&context)];
    let pool = context.pool(3, false);
    let [forked, gate, done] = pool.events[..] else {
        unreachable!()
    };
    let joined = graphs::counter(context.0, 0);
    let memory = context.alloc(Kind::Shared, SIZE);
    let graph = graphs::record(lists[0], || {
        assert_eq!(barrier(lists[0], forked, &[]), OK);
        common::fill(lists[1], memory, &[1], SIZE, joined, &[forked]);
        assert_eq!(barrier(lists[0], NONE, &[joined]), OK);
    });
    let executable = graphs::instantiate(graph).unwrap();
    execute(lists[0], executable);
    assert!(is_set(forked));
    bytes_mut(memory, SIZE).fill(0);
    assert_eq!(graphs::append(lists[0], executable, done, &[gate]), OK);
    thread::sleep(Duration::from_millis(5));
    assert_eq!(bytes(memory, SIZE), [0; SIZE]);
    ok!(zeEventHostSignal(gate));
    wait(done);
    assert_eq!(bytes(memory, SIZE), [1; SIZE]);
    assert_eq!(graphs::destroy_executable(executable), OK);
    assert_eq!(graphs::destroy(graph), OK);
    end(&context, &[joined], &lists, &[memory]);
}

/// The first list has to follow the work of all others.
#[test]
fn forks_that_are_not_joined_make_the_graph_invalid() {
    let context = Context::new();
    let lists = [list(&context), list(&context)];
    let [forked, joined] = [(); 2].map(|()| graphs::counter(context.0, 0));
    let memory = context.alloc(Kind::Shared, SIZE);
    let fill = |list, signal, waits: &[Event]| {
        common::fill(list, memory, &[1], SIZE, signal, waits);
    };
    for late in [false, true] {
        assert_eq!(graphs::begin(lists[0]), OK);
        fill(lists[0], forked, &[]);
        fill(lists[1], joined, &[forked]);
        if late {
            assert_eq!(barrier(lists[0], NONE, &[joined]), OK);
            fill(lists[1], NONE, &[]);
        }
        let (graph, code) = graphs::end(lists[0]);
        assert_eq!(code, ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS);
        assert!(!lists.iter().any(|list| graphs::is_capturing(*list)));
        assert_eq!(graphs::is_empty(graph), Err(ZE_RESULT_ERROR_INVALID_GRAPH));
        assert_eq!(
            graphs::instantiate(graph),
            Err(ZE_RESULT_ERROR_INVALID_GRAPH)
        );
        assert_eq!(graphs::destroy(graph), OK);
    }
    end(&context, &[forked, joined], &lists, &[memory]);
}

#[test]
fn only_an_asynchronous_immediate_list_captures_and_only_once() {
    let context = Context::new();
    let (first, regular) = (list(&context), context.list(0));
    let mut desc = common::queue_desc(0);
    desc.mode = sys::ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
    let synchronous = context.immediate_on(common::device(), &desc);
    let event = graphs::counter(context.0, 0);
    assert_eq!(graphs::begin(regular), INVALID);
    assert_eq!(graphs::begin(synchronous), UNSUPPORTED);
    let none = ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING;
    assert_eq!(graphs::end(first), (ptr::null_mut(), none));
    assert_eq!(graphs::graph_of(first), Err(none));
    let graph = graphs::create(context.0);
    assert_eq!(graphs::primary(graph), Err(INVALID));
    assert_eq!(graphs::is_empty(graph), Ok(true));
    let invalid = ZE_RESULT_ERROR_INVALID_GRAPH;
    assert_eq!(graphs::instantiate(graph), Err(invalid));
    assert_eq!(graphs::begin_into(first, graph), OK);
    assert_eq!(graphs::begin(first), INVALID);
    assert_eq!(graphs::instantiate(graph), Err(invalid));
    assert_eq!(barrier(first, event, &[]), OK);
    assert_eq!(barrier(synchronous, NONE, &[event]), UNSUPPORTED);
    assert!(!graphs::is_capturing(synchronous));
    assert_eq!(graphs::end(first), (graph, OK));
    assert_eq!(graphs::begin_into(first, graph), INVALID, "not empty");
    assert_eq!(graphs::destroy(graph), OK);
    ok!(zeEventDestroy(event));
    [first, regular, synchronous]
        .into_iter()
        .for_each(common::destroy);
}

#[test]
fn what_is_recorded_cannot_be_waited_for() {
    let context = Context::new();
    let (first, second) = (list(&context), list(&context));
    let pool = context.pool(1, false);
    let (regular, internal) = (pool.events[0], graphs::counter(context.0, 0));
    assert_eq!(graphs::begin(first), OK);
    for event in [regular, internal] {
        assert_eq!(barrier(first, event, &[]), OK);
        assert!(!is_set(event));
        assert_eq!(ze!(zeEventHostSynchronize(event, 0)), UNSUPPORTED);
    }
    assert_eq!(synchronize(first), UNSUPPORTED);
    let list = context.list(0);
    let outside = ZE_RESULT_ERROR_GRAPH_INTERNAL_EVENT;
    assert_eq!(barrier(list, NONE, &[internal]), outside);
    assert_eq!(barrier(second, internal, &[]), outside);
    assert_eq!(barrier(list, NONE, &[regular]), OK);
    let (graph, code) = graphs::end(first);
    assert_eq!(code, OK);
    wait(internal);
    assert_eq!(barrier(second, internal, &[]), OK, "it can be used again");
    wait(internal);
    assert!(!graphs::is_capturing(second));
    assert_eq!(graphs::destroy(graph), OK);
    end(&context, &[internal], &[first, second, list], &[]);
}

#[test]
fn captures_do_not_merge_and_have_no_parts() {
    let context = Context::new();
    let lists = [list(&context), list(&context), list(&context)];
    let events = [(); 2].map(|()| graphs::counter(context.0, 0));
    let empty = graphs::record(lists[0], || ());
    let executable = graphs::instantiate(empty).unwrap();
    for (list, event) in lists.iter().zip(events) {
        assert_eq!(graphs::begin(*list), OK);
        assert_eq!(barrier(*list, event, &[]), OK);
    }
    let merge = ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT;
    assert_eq!(barrier(lists[0], NONE, &[events[1]]), merge);
    assert_eq!(barrier(lists[2], NONE, &events), merge);
    assert!(!graphs::is_capturing(lists[2]));
    assert_eq!(
        graphs::append(lists[0], executable, NONE, &[]),
        UNSUPPORTED,
        "a part"
    );
    assert_eq!(barrier(lists[2], NONE, &[events[1]]), OK);
    assert_eq!(graphs::end(lists[2]).1, INVALID, "it did not begin");
    for list in &lists[..2] {
        let (graph, code) = graphs::end(*list);
        assert_eq!(code, OK);
        assert_eq!(graphs::destroy(graph), OK);
    }
    execute(lists[0], executable);
    assert_eq!(graphs::destroy_executable(executable), OK);
    assert_eq!(graphs::destroy(empty), OK);
    end(&context, &events, &lists, &[]);
}

/// An internal event is the instance's own, an external one the program's.
#[test]
fn external_events_are_set_by_each_execution() {
    let context = Context::new();
    let list = list(&context);
    let pool = context.pool(1, false);
    let gate = pool.events[0];
    let (internal, external) = (
        graphs::counter(context.0, 0),
        graphs::counter(context.0, EXTERNAL),
    );
    let graph = graphs::record(list, || {
        assert_eq!(barrier(list, internal, &[]), OK);
        assert_eq!(barrier(list, external, &[internal]), OK);
    });
    let executable = graphs::instantiate(graph).unwrap();
    for _ in 0..3 {
        assert!(is_set(external));
        assert_eq!(graphs::append(list, executable, NONE, &[gate]), OK);
        assert!(is_set(internal) && !is_set(external));
        ok!(zeEventHostSignal(gate));
        wait(external);
        ok!(zeEventHostReset(gate));
    }
    let shared = graphs::counter(
        context.0,
        EXTERNAL | extensions::ZE_EVENT_COUNTER_BASED_FLAG_IPC,
    );
    assert_eq!(graphs::begin(list), OK);
    assert_eq!(barrier(list, shared, &[]), UNSUPPORTED);
    let (other, code) = graphs::end(list);
    assert_eq!(code, OK);
    assert_eq!(graphs::destroy_executable(executable), OK);
    for graph in [graph, other] {
        assert_eq!(graphs::destroy(graph), OK);
    }
    for event in [internal, external, shared] {
        ok!(zeEventDestroy(event));
    }
    common::destroy(list);
}

#[test]
fn a_graph_is_executed_by_lists_like_the_one_that_recorded_it() {
    let context = Context::new();
    let (list, regular) = (list(&context), context.list(0));
    let [gpu, cpu] = common::devices();
    let other = context.immediate_on(gpu, &common::queue_desc(0));
    let graph = graphs::record(list, || assert_eq!(barrier(list, NONE, &[]), OK));
    let executable = graphs::instantiate(graph).unwrap();
    for other in [regular, other] {
        assert_eq!(
            graphs::append(other, executable, NONE, &[]),
            sys::ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE
        );
    }
    assert_ne!(gpu, cpu);
    execute(list, executable);
    assert_eq!(graphs::destroy_executable(executable), OK);
    assert_eq!(graphs::destroy(graph), OK);
    [list, regular, other].into_iter().for_each(common::destroy);
}

extern "C" fn count(counter: *mut c_void) {
    unsafe { &*counter.cast::<AtomicUsize>() }.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn callbacks_are_called_when_the_graph_is_destroyed() {
    let context = Context::new();
    let list = list(&context);
    let counter = AtomicUsize::new(0);
    let data = (&raw const counter).cast_mut().cast();
    assert_eq!(graphs::begin(list), OK);
    let graph = graphs::graph_of(list).unwrap();
    assert_eq!(graphs::on_destruction(graph, Some(count), data), OK);
    assert_eq!(graphs::end(list), (graph, OK));
    let executable = graphs::instantiate(graph).unwrap();
    assert_eq!(graphs::on_destruction(graph, Some(count), data), OK);
    assert_eq!(
        graphs::on_destruction(graph, None, data),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER
    );
    let in_use = sys::ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
    assert_eq!(graphs::destroy(graph), in_use, "strict");
    assert_eq!(counter.load(Ordering::Relaxed), 0);
    assert_eq!(graphs::destroy_executable(executable), OK);
    assert_eq!(graphs::destroy(graph), OK);
    assert_eq!(counter.load(Ordering::Relaxed), 2);
    common::destroy(list);
}

/// Its lists submit again, and its events belong to no graph.
#[test]
fn a_graph_that_is_destroyed_while_it_records_ends_the_capture() {
    let context = Context::new();
    let list = list(&context);
    let event = graphs::counter(context.0, 0);
    assert_eq!(graphs::begin(list), OK);
    assert_eq!(barrier(list, event, &[]), OK);
    assert_eq!(graphs::destroy(graphs::graph_of(list).unwrap()), OK);
    assert!(!graphs::is_capturing(list));
    wait(event);
    assert_eq!(synchronize(list), OK);
    ok!(zeEventDestroy(event));
    common::destroy(list);
}

/// A graph whose memory has been freed is refused as a whole.
#[test]
fn a_graph_of_freed_memory_does_nothing() {
    let context = Context::new();
    let list = list(&context);
    let (kept, freed) = (
        context.alloc(Kind::Shared, SIZE),
        context.alloc(Kind::Shared, SIZE),
    );
    let graph = graphs::record(list, || {
        common::fill(list, kept, &[1], SIZE, NONE, &[]);
        common::fill(list, freed, &[1], SIZE, NONE, &[]);
    });
    let executable = graphs::instantiate(graph).unwrap();
    bytes_mut(kept, SIZE).fill(0);
    context.free(freed);
    assert_eq!(graphs::append(list, executable, NONE, &[]), INVALID);
    assert_eq!(synchronize(list), OK);
    assert_eq!(bytes(kept, SIZE), [0; SIZE]);
    assert_eq!(graphs::destroy_executable(executable), OK);
    assert_eq!(graphs::destroy(graph), OK);
    common::destroy(list);
    context.free(kept);
}

#[test]
fn the_description_has_every_command_and_its_order() {
    let context = Context::new();
    let lists = [list(&context), list(&context)];
    let [forked, joined] = [(); 2].map(|()| graphs::counter(context.0, 0));
    let memory = context.alloc(Kind::Shared, SIZE);
    let graph = graphs::record(lists[0], || {
        common::fill(lists[0], memory, &[1], SIZE, forked, &[]);
        common::fill(lists[1], memory, &[2], SIZE / 2, joined, &[forked]);
        assert_eq!(barrier(lists[0], NONE, &[joined]), OK);
    });
    let path = std::env::temp_dir().join(format!("zeusm-graph-{}", std::process::id()));
    let dump = |is_simple| {
        assert_eq!(graphs::dump(graph, path.to_str().unwrap(), is_simple), OK);
        std::fs::read_to_string(&path).unwrap()
    };
    let (simple, detailed) = (dump(true), dump(false));
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<&str> = simple.lines().collect();
    for line in [
        "n0 [label=\"a fill of 64 bytes\"]",
        "n1 [label=\"a fill of 32 bytes\"]",
        "n2 [label=\"synchronization\"]",
    ] {
        assert!(lines.contains(&line), "{simple}");
    }
    let arrows: Vec<&&str> = lines.iter().filter(|line| line.contains("->")).collect();
    assert_eq!(arrows, [&"n0 -> n1", &"n0 -> n2", &"n1 -> n2"]);
    let place = memory as usize;
    let written = format!("writes {place:#x} to {:#x}", place + SIZE);
    assert!(detailed.contains(&written) && !simple.contains(&written));
    assert_eq!(graphs::dump(graph, "/no/such/folder", false), INVALID);
    assert_eq!(graphs::destroy(graph), OK);
    end(&context, &[forked, joined], &lists, &[memory]);
}

/// Two instances at the same time, each from its own thread and list: internal events of one do not set those of the other.
#[test]
fn instances_are_executed_by_threads_at_the_same_time() {
    let context = Context::new();
    let (first, second) = (list(&context), list(&context));
    let [forked, joined] = [(); 2].map(|()| graphs::counter(context.0, 0));
    let [a, b] = [(); 2].map(|()| context.alloc(Kind::Shared, MIB));
    let graph = graphs::record(first, || {
        common::fill(first, a, &[1], MIB, forked, &[]);
        common::copy(second, b, a, MIB, joined, &[forked]);
        assert_eq!(barrier(first, NONE, &[joined]), OK);
    });
    let executables = [(); 4].map(|()| graphs::instantiate(graph).unwrap() as usize);
    bytes_mut(b, MIB).fill(0);
    thread::scope(|scope| {
        for executable in executables {
            let context = &context;
            scope.spawn(move || {
                let list = list(context);
                for _ in 0..50 {
                    execute(list, executable as graphs::Executable);
                }
                common::destroy(list);
                let executable = executable as graphs::Executable;
                assert_eq!(graphs::destroy_executable(executable), OK);
            });
        }
    });
    assert!(bytes(b, MIB).iter().all(|byte| *byte == 1));
    assert_eq!(graphs::destroy(graph), OK);
    end(&context, &[forked, joined], &[first, second], &[a, b]);
}

/// A command of a random program: a copy between buffers, or a fill, on one of the lists.
#[derive(Clone, Copy, Debug)]
struct Step {
    list: usize,
    to: usize,
    from: Option<usize>,
    byte: u8,
}

const LISTS: usize = 4;
const BUFFERS: usize = 5;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..LISTS, 0..BUFFERS, 0..2 * BUFFERS, any::<u8>());
    let step = step.prop_map(|(list, to, from, byte)| Step {
        list,
        to,
        from: (from < BUFFERS && from != to).then_some(from),
        byte,
    });
    vec(step, 1..40)
}

/// What one execution does to the buffers, a byte for each.
fn model(steps: &[Step], buffers: &mut [u8; BUFFERS]) {
    for step in steps {
        buffers[step.to] = step.from.map_or(step.byte, |from| buffers[from]);
    }
}

/// Appends the steps to lists, each behind the last ones of other lists that used its buffers, and joins all.
fn append(steps: &[Step], lists: &[List], events: &[Event], buffers: &[Memory]) {
    let mut users = [0; BUFFERS];
    let mut is_captured = [true, false, false, false];
    assert_eq!(barrier(lists[0], events[0], &[]), OK);
    for step in steps {
        let mut used: Vec<usize> = [Some(step.to), step.from].into_iter().flatten().collect();
        used = used.into_iter().map(|buffer| users[buffer]).collect();
        if !is_captured[step.list] {
            used.push(0);
        }
        used.retain(|list| *list != step.list);
        let waits: Vec<Event> = used.into_iter().map(|list| events[list]).collect();
        let (list, signal, to) = (lists[step.list], events[step.list], buffers[step.to]);
        match step.from {
            Some(from) => common::copy(list, to, buffers[from], SIZE, signal, &waits),
            None => common::fill(list, to, &[step.byte], SIZE, signal, &waits),
        }
        is_captured[step.list] = true;
        for buffer in [Some(step.to), step.from].into_iter().flatten() {
            users[buffer] = step.list;
        }
    }
    let forked = (1..LISTS).filter(|list| is_captured[*list]);
    let waits: Vec<Event> = forked.map(|list| events[list]).collect();
    assert_eq!(barrier(lists[0], NONE, &waits), OK);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Executed some times, a graph does what its commands would, one after another.
    #[test]
    fn executions_do_what_the_commands_do(steps in steps(), rounds in 1..4_usize) {
        if !common::knows_newer_flags() {
            return Ok(());
        }
        let context = Context::new();
        let lists = [(); LISTS].map(|()| list(&context));
        let events = [(); LISTS].map(|()| graphs::counter(context.0, 0));
        let buffers = [(); BUFFERS].map(|()| context.alloc(Kind::Shared, SIZE));
        let mut expected = [0; BUFFERS];
        for (index, memory) in buffers.iter().enumerate() {
            bytes_mut(*memory, SIZE).fill(index as u8);
            expected[index] = index as u8;
        }
        let graph = graphs::record(lists[0], || append(&steps, &lists, &events, &buffers));
        let executable = graphs::instantiate(graph).unwrap();
        for _ in 0..rounds {
            assert_eq!(graphs::append(lists[0], executable, NONE, &[]), OK);
            model(&steps, &mut expected);
        }
        assert_eq!(synchronize(lists[0]), OK);
        for (memory, byte) in buffers.iter().zip(expected) {
            prop_assert_eq!(bytes(*memory, SIZE), [byte; SIZE]);
        }
        assert_eq!(graphs::destroy_executable(executable), OK);
        assert_eq!(graphs::destroy(graph), OK);
        end(&context, &events, &lists, &buffers);
    }
}
