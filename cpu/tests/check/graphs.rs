//! Programs that execute graphs: what an execution does is found as what its commands do.

use level_zero_sys as sys;

use crate::common::{self, Context, Kind, NONE, copy, destroy, fill};
use crate::gallery::Program;
use crate::kernels::Setup;
use crate::recorded;

pub const PROGRAMS: &[Program] = &[
    (
        "graph_of_freed_memory_is_executed",
        &["use-after-free"],
        graph_of_freed_memory_is_executed,
    ),
    (
        "host_reads_what_a_graph_writes",
        &["race"],
        host_reads_what_a_graph_writes,
    ),
    (
        "memory_of_a_graph_is_freed_too_early",
        &["free-in-use"],
        memory_of_a_graph_is_freed_too_early,
    ),
    ("correct_graph", &[], correct_graph),
];

pub const WITH_KERNELS: &[Program] = &[(
    "kernel_of_a_graph_writes_behind",
    &["out-of-bounds"],
    kernel_of_a_graph_writes_behind,
)];

/// An executable graph of what `work` appends.
fn executable(list: common::List, work: impl FnOnce()) -> (recorded::Graph, recorded::Executable) {
    let graph = recorded::record(list, work);
    (graph, recorded::instantiate(graph).unwrap())
}

fn forget((graph, executable): (recorded::Graph, recorded::Executable)) {
    assert_eq!(recorded::destroy_executable(executable), common::OK);
    assert_eq!(recorded::destroy(graph), common::OK);
}

fn graph_of_freed_memory_is_executed() {
    let context = Context::new();
    let memory = context.alloc(Kind::Device, 1000);
    let list = context.immediate(0);
    let graph = executable(list, || fill(list, memory, &[1], 1000, NONE, &[]));
    context.free(memory);
    let code = recorded::append(list, graph.1, NONE, &[]);
    assert_eq!(code, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
    forget(graph);
    destroy(list);
}

/// Executes a graph, and does something with its memory before the host waits.
fn with_early(early: impl FnOnce(&Context, common::Memory)) {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 1000);
    let list = context.immediate(0);
    let graph = executable(list, || fill(list, memory, &[1], 1000, NONE, &[]));
    assert_eq!(recorded::append(list, graph.1, NONE, &[]), common::OK);
    early(&context, memory);
    common::finish(&context, list);
    forget(graph);
    destroy(list);
}

fn host_reads_what_a_graph_writes() {
    with_early(|_, memory| {
        let first = common::bytes(memory, 1).as_ptr();
        unsafe { first.read_volatile() };
    });
}

fn memory_of_a_graph_is_freed_too_early() {
    with_early(|context, memory| context.free(memory));
}

fn correct_graph() {
    let context = Context::new();
    let [from, to] = [Kind::Device, Kind::Shared].map(|kind| context.alloc(kind, 1000));
    let list = context.immediate(*common::queue_orders().last().unwrap());
    let graph = executable(list, || {
        fill(list, from, &[1], 1000, NONE, &[]);
        copy(list, to, from, 1000, NONE, &[]);
    });
    for _ in 0..3 {
        assert_eq!(recorded::append(list, graph.1, NONE, &[]), common::OK);
        common::finish(&context, list);
        assert_eq!(common::bytes(to, 1000), [1; 1000]);
    }
    forget(graph);
    destroy(list);
    context.free(from);
    context.free(to);
}

fn kernel_of_a_graph_writes_behind() {
    let setup = Setup::new(true);
    let memory = setup.runtime.shared(&[0; 1024]);
    let pointer = memory.as_mut_ptr().cast();
    let graph = executable(setup.list, || setup.launch(pointer, 1025));
    assert_eq!(memory, [0; 1024]);
    assert_eq!(recorded::append(setup.list, graph.1, NONE, &[]), common::OK);
    setup.synchronize();
    assert_eq!(memory, [7; 1024]);
    forget(graph);
    setup.free(pointer);
}
