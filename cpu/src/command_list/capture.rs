//! A list whose commands a graph records.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use level_zero_sys as sys;
use level_zero_sys::extensions;

use super::graph::{Graph, Source};
use super::list::{CommandList, Role, Submitter};
use crate::abi::result::{ZeResult, ensure};
use crate::event::Event;
use crate::handle::resolve;

impl CommandList {
    /// The graph that records its commands, and the graph's handle.
    pub(super) fn graph(&self) -> Option<(usize, Arc<Graph>)> {
        let handle = self.capture.load(Ordering::Relaxed);
        if handle == 0 {
            return None;
        }
        let graph = resolve::<Graph>(handle as *mut extensions::_ze_graph_handle_t);
        let graph = graph.ok().filter(|graph| graph.is_capturing());
        if graph.is_none() {
            self.capture.store(0, Ordering::Relaxed);
        }
        graph.map(|graph| (handle, graph))
    }

    /// The graph that is to record a command with these events: the one that records the list's commands, or the one that has
    /// recorded what the command waits for, which the list joins then.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT` for events of different graphs,
    /// `ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED` for a synchronous list, `ZE_RESULT_ERROR_GRAPH_INTERNAL_EVENT` for an
    /// internal event of another graph, or outside of its graph.
    pub(super) fn recorder(
        &self,
        event: Option<&Event>,
        waits: &[Arc<Event>],
    ) -> ZeResult<Option<(usize, Arc<Graph>)>> {
        let mut events = waits.iter().map(|it| &**it).chain(event);
        let is_captured = |event: &Event| event.captured_by() != 0;
        if self.capture.load(Ordering::Relaxed) == 0 && !events.clone().any(is_captured) {
            return Ok(None);
        }
        let handle = self.recording_graph(waits)?;
        let is_elsewhere =
            |event: &Event| is_captured(event) && event.captured_by() != handle.unwrap_or(0);
        ensure(
            !events.any(|event| event.is_internal() && is_elsewhere(event)),
            extensions::ZE_RESULT_ERROR_GRAPH_INTERNAL_EVENT,
        )?;
        if let Some(handle) = handle {
            self.capture.store(handle, Ordering::Relaxed);
        } else if let (Role::Immediate(_), Some(event)) = (&self.role, event) {
            event.capture(0);
        }
        Ok(self.graph())
    }

    /// The handle of the graph that is to record a command with this wait list.
    fn recording_graph(&self, waits: &[Arc<Event>]) -> ZeResult<Option<usize>> {
        let Role::Immediate(immediate) = &self.role else {
            return Ok(None);
        };
        let own = self.graph().map(|(handle, _)| handle);
        let waited = waits.iter().map(|event| event.captured_by());
        let mut graphs = own.into_iter().chain(waited.filter(|graph| *graph != 0));
        let first = graphs.next();
        ensure(
            graphs.all(|graph| Some(graph) == first),
            extensions::ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT,
        )?;
        if first.is_some() {
            check_asynchronous(immediate)?;
        }
        Ok(first)
    }

    /// What a graph knows of the list.
    pub(super) fn source(&self) -> Source {
        let priority = match &self.role {
            Role::Immediate(immediate) => immediate.priority.into(),
            Role::Regular(_) => Default::default(),
        };
        Source {
            list: self.id,
            device: self.device,
            group: self.group,
            priority,
        }
    }
}

/// Only the commands of an asynchronous list can be recorded.
pub(super) fn check_asynchronous(list: &Submitter) -> ZeResult {
    ensure(
        list.mode != sys::ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS,
        extensions::ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED,
    )
}
