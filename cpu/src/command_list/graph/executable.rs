//! Executable graphs.

use std::collections::HashMap;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions;
use smallvec::SmallVec;
use zeusm_process::{ForkSafe, Mutex};

use super::entry::Handle;
use super::object::{Graph, Node, Source, State, number};
use crate::abi::entry::NoExtension;
use crate::abi::result::{ZeResult, ensure};
use crate::check;
use crate::command_list::append::Events;
use crate::command_list::list::CommandList;
use crate::command_list::recording::Command;
use crate::command_list::submit::submit;
use crate::engine::{Kind, Nothing, Order, Pins, Signal, Stream};
use crate::event::Event;
use crate::handle::{Named, getters, hand_out, object};

object!(
    ExecutableGraph,
    extensions::_ze_executable_graph_handle_t,
    ExecutableGraph
);

/// An instance of a graph.
pub struct ExecutableGraph {
    /// The graph, and its handle.
    source: (Arc<Graph>, usize),
    /// The list with which the recording began.
    primary: Source,
    nodes: Vec<Node>,
    /// Where the commands of the other lists are executed.
    branches: Vec<Stream>,
    /// The end of the last execution. Held while the commands of one are submitted.
    last: ForkSafe<Mutex<Option<Arc<Signal>>>>,
}

/// `zeGraphInstantiateExt`.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_GRAPH` when its recording has not ended, or not been joined.
pub fn instantiate(
    Named(source, handle): Named<Graph>,
    _: NoExtension,
    executable: &mut *mut extensions::_ze_executable_graph_handle_t,
) -> ZeResult {
    let content = source.content().clone();
    let invalid = extensions::ZE_RESULT_ERROR_INVALID_GRAPH;
    ensure(content.state == State::Ended, invalid)?;
    let mut sources = content.lines.iter().map(|line| line.source);
    let primary = sources.next().ok_or(invalid)?;
    let stream = |it: Source| Stream::new(it.device.engine.as_ref(), it.priority);
    let made = ExecutableGraph {
        source: (source, handle as usize),
        primary,
        nodes: joined(own_events(content.nodes)),
        branches: sources.map(stream).collect(),
        last: ForkSafe::default(),
    };
    hand_out(made, executable)
}

/// The commands with the instance's own events in place of the internal ones.
fn own_events(mut nodes: Vec<Node>) -> Vec<Node> {
    let mut own = HashMap::<usize, Arc<Event>>::new();
    for command in nodes.iter_mut().map(|node| &mut node.command) {
        for event in &mut command.waits {
            *event = Arc::clone(own.get(&number(event)).unwrap_or(event));
        }
        if let Some(event) = command.event.as_mut().filter(|it| it.is_internal()) {
            let made = own.entry(number(event));
            *event = Arc::clone(made.or_insert_with(|| Arc::new(event.of_instance())));
        }
    }
    nodes
}

/// The most commands that become one, so that it does not hold those of other lists for long.
const LONGEST: usize = 256;

/// The commands, of which those that can be executed as one are one. The checker tells each from the others.
fn joined(nodes: Vec<Node>) -> Vec<Node> {
    if check::is_on() {
        return nodes;
    }
    let (mut joined, mut rest) = (Vec::with_capacity(nodes.len()), &nodes[..]);
    while let Some((first, others)) = rest.split_first() {
        let pairs = rest.iter().zip(others).take(LONGEST);
        let next = pairs
            .take_while(|(node, next)| may_join(node, next))
            .count();
        let whole = join(first, &others[..next]);
        rest = &others[whole.as_ref().map_or(0, |_| next)..];
        joined.push(whole.unwrap_or_else(|| first.clone()));
    }
    joined
}

/// One command that does what `first` and then `next` do.
fn join(first: &Node, next: &[Node]) -> Option<Node> {
    let operations = next.iter().map(|node| Arc::clone(&node.command.operation));
    let operations: Vec<_> = operations.collect();
    let command = Command {
        operation: first.command.operation.joined_with(&operations)?,
        event: next.last()?.command.event.clone(),
        ..first.command.clone()
    };
    Some(Node { command, ..*first })
}

/// Whether nothing has to happen between a command and the next one: no event, and no time that an event keeps.
fn may_join(Node { line, command }: &Node, next: &Node) -> bool {
    let is_native = |command: &Command| command.operation.kind() == Kind::Native;
    let timed = next
        .command
        .event
        .as_ref()
        .is_some_and(|event| event.is_timed());
    let is_alone = command.event.is_none() && next.command.waits.is_empty() && !timed;
    let is_next = *line == next.line && command.order == next.command.order;
    is_next && is_alone && is_native(command) && is_native(&next.command)
}

/// `zeCommandListAppendGraphExt`. An execution follows the last one of the same executable graph, and all commands of its list
/// that precede it; the list's later ones follow it.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE` for a regular list, and for one of another device or queue group than that which
/// was recorded; `ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED` for a list that captures or would have to.
pub fn append(
    list: Arc<CommandList>,
    graph: Arc<ExecutableGraph>,
    _: NoExtension,
    events: Events,
) -> ZeResult {
    let other = sys::ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE;
    let immediate = list.immediate().map_err(|_| other)?;
    let is_same = std::ptr::eq(list.device, graph.primary.device);
    ensure(is_same && list.group == graph.primary.group, other)?;
    let captured = extensions::ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED;
    let is_captured = |event: &Arc<Event>| event.captured_by() != 0;
    let is_free = list.graph().is_none() && !events.waits.iter().any(is_captured);
    ensure(is_free, captured)?;
    // Before anything is submitted.
    list.recorder(events.signal.as_deref(), &[])?;
    let waits = events.waits.iter().map(|event| event.signal()).collect();
    graph.submit(&immediate.stream, waits)?;
    list.append(Nothing, Order::Barrier, events.signal, &[])
}

impl ExecutableGraph {
    /// Submits the commands between two barriers.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when memory that they touch has been freed; nothing is submitted then.
    fn submit(&self, stream: &Stream, mut waits: SmallVec<[Arc<Signal>; 4]>) -> ZeResult {
        let pins = self.nodes.iter().map(|node| node.command.operation.pin());
        // They keep the memory alive until every command has its own.
        let _pins = pins.collect::<ZeResult<Vec<Pins>>>()?;
        let mut last = self.last.get().lock();
        waits.extend(last.take());
        let begun = barrier(stream, waits);
        for branch in &self.branches {
            barrier(branch, SmallVec::from_iter([Arc::clone(&begun)]));
        }
        for Node { line, command } in &self.nodes {
            let branch = line.checked_sub(1);
            let stream = branch.map_or(stream, |number| &self.branches[number]);
            let operation = Arc::clone(&command.operation);
            let event = command.event.as_deref();
            submit(stream, operation, command.order, &command.waits, event)?;
        }
        let ends = self.branches.iter();
        let ends = ends.map(|branch| barrier(branch, SmallVec::new()));
        *last = Some(barrier(stream, ends.collect()));
        Ok(())
    }
}

/// Submits a barrier that waits for these, and returns its signal.
fn barrier(stream: &Stream, waits: SmallVec<[Arc<Signal>; 4]>) -> Arc<Signal> {
    let signal = Arc::new(Signal::default());
    let (order, set) = (Order::Barrier, Some(Arc::clone(&signal)));
    stream.submit(Arc::new(Nothing), Pins::new(), order, waits, set);
    signal
}

getters! { ExecutableGraph {
    /// `zeExecutableGraphGetSourceGraphExt`.
    source: Handle = |graph| Ok(graph.source.1 as Handle);
}}
