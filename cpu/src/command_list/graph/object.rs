//! A graph, and how it records commands.

use std::collections::HashMap;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions;
use zeusm_process::{ForkSafe, Mutex, MutexGuard};

use crate::abi::result::{ZeResult, ensure};
use crate::command_list::recording::Command;
use crate::device::{Device, QueueGroup};
use crate::engine::{Kind, Priority};
use crate::event::Event;
use crate::handle::object;

object!(Graph, extensions::_ze_graph_handle_t, Graph);

/// A recorded graph.
#[derive(Default)]
pub struct Graph {
    content: ForkSafe<Mutex<Content>>,
}

/// How far the recording of a graph is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing has been recorded.
    #[default]
    New,
    /// A list is capturing.
    Capturing,
    /// It can be instantiated.
    Ended,
    /// It cannot: the first list does not follow the work of another one.
    Invalid,
}

/// What a graph has recorded.
#[derive(Clone, Default)]
pub(super) struct Content {
    pub(super) state: State,
    /// The handle of the list that began to capture, 0 before.
    pub(super) primary: usize,
    /// The lists, from the first one on.
    pub(super) lines: Vec<Line>,
    /// The commands of all lists, in the order of their appends.
    pub(super) nodes: Vec<Node>,
    /// What the command that signals an event last follows, for the address of each event.
    signals: HashMap<usize, Progress>,
    callbacks: Vec<Callback>,
}

/// How many commands of the graph there were at the last one of each line that is followed.
type Progress = Vec<usize>;

/// A list as the source of commands.
#[derive(Clone, Copy)]
pub struct Source {
    /// Its id.
    pub list: u64,
    /// Its device.
    pub device: &'static Device,
    /// Its queue group.
    pub group: QueueGroup,
    /// Its priority.
    pub priority: Priority,
}

/// The commands of one list.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) source: Source,
    /// What its next command follows.
    follows: Progress,
    /// Its last command that does any work, counted likewise.
    work: usize,
}

/// A recorded command, and the number of its line.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) command: Command,
}

/// What is called when the graph is destroyed.
#[derive(Clone, Copy)]
pub(super) struct Callback {
    pub(super) function: unsafe extern "C" fn(*mut std::ffi::c_void),
    /// The argument, an address.
    pub(super) data: usize,
}

/// The number by which a graph knows an event, which it keeps alive.
pub(super) fn number(event: &Arc<Event>) -> usize {
    Arc::as_ptr(event) as usize
}

/// Adds what `other` follows.
fn merge(follows: &mut Progress, other: &[usize]) {
    follows.resize(follows.len().max(other.len()), 0);
    for (own, other) in follows.iter_mut().zip(other) {
        *own = (*own).max(*other);
    }
}

impl Content {
    /// The number of a list's line.
    fn line(&mut self, source: Source) -> usize {
        let known = |line: &Line| line.source.list == source.list;
        self.lines.iter().position(known).unwrap_or_else(|| {
            self.lines.push(Line {
                source,
                follows: Progress::new(),
                work: 0,
            });
            self.lines.len() - 1
        })
    }

    /// Appends a command of a list.
    fn push(&mut self, source: Source, command: Command) {
        let number_of_line = self.line(source);
        let position = self.nodes.len() + 1;
        let line = &mut self.lines[number_of_line];
        for followed in command.waits.iter().map(number) {
            let progress = self.signals.get(&followed);
            merge(&mut line.follows, progress.map_or(&[], |it| it));
        }
        merge(&mut line.follows, &vec![0; number_of_line + 1]);
        line.follows[number_of_line] = position;
        if command.operation.kind() != Kind::Marker {
            line.work = position;
        }
        if let Some(event) = &command.event {
            self.signals.insert(number(event), line.follows.clone());
        }
        self.nodes.push(Node {
            line: number_of_line,
            command,
        });
    }

    /// Whether the first line follows the work of all others.
    fn is_joined(&self) -> bool {
        let follows = self.lines.first().map_or(&[][..], |line| &line.follows);
        let mut others = self.lines.iter().enumerate().skip(1);
        others.all(|(number, line)| follows.get(number).copied().unwrap_or(0) >= line.work)
    }

    /// The events that it has recorded do not belong to it any more.
    fn release(&mut self, graph: usize) {
        for event in self.nodes.iter().filter_map(|it| it.command.event.as_ref()) {
            event.release(graph);
        }
        self.signals.clear();
    }
}

impl Graph {
    /// What it has recorded.
    pub(super) fn content(&self) -> MutexGuard<'_, Content> {
        self.content.get().lock()
    }

    /// Whether it records the commands of lists.
    pub(in crate::command_list) fn is_capturing(&self) -> bool {
        self.content().state == State::Capturing
    }

    /// Records a command of the list `source`; `handle` is the graph's own.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED` for an external event that processes share.
    pub(in crate::command_list) fn record(
        &self,
        handle: usize,
        source: Source,
        command: Command,
    ) -> ZeResult {
        let mut events = command.waits.iter().chain(&command.event);
        let shared = events.any(|event| event.is_shared_counter() && !event.is_internal());
        ensure(
            !shared,
            extensions::ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED,
        )?;
        if let Some(event) = &command.event {
            event.capture(handle);
        }
        self.content().push(source, command);
        Ok(())
    }

    /// Begins to record the commands of a list.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when it has recorded any, or does so.
    pub(super) fn begin(&self, primary: usize, source: Source) -> ZeResult {
        let mut content = self.content();
        let is_empty = content.nodes.is_empty() && content.state != State::Capturing;
        ensure(is_empty, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        content.state = State::Capturing;
        content.primary = primary;
        content.lines.clear();
        content.line(source);
        Ok(())
    }

    /// Ends that.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS` when the first list does not follow the work of all others.
    pub(super) fn end(&self, handle: usize) -> ZeResult {
        let mut content = self.content();
        content.release(handle);
        let is_joined = content.is_joined();
        content.state = if is_joined {
            State::Ended
        } else {
            State::Invalid
        };
        ensure(is_joined, extensions::ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS)
    }

    /// Calls `callback` when it is destroyed.
    pub(super) fn add_callback(&self, callback: Callback) {
        self.content().callbacks.push(callback);
    }

    /// Ends the capture of a graph that is destroyed, and returns what is to be called.
    pub(super) fn abandon(&self, handle: usize) -> Vec<Callback> {
        let mut content = self.content();
        if content.state == State::Capturing {
            content.release(handle);
            content.state = State::Invalid;
        }
        std::mem::take(&mut content.callbacks)
    }
}
