//! The description of a graph in the language of Graphviz.

use std::collections::HashMap;
use std::ffi::CStr;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions;

use super::object::{Content, Graph, Node, number};
use crate::abi::entry::Chain;
use crate::abi::result::{ZeResult, described};
use crate::engine::Operation;
use crate::system::path;

/// `zeGraphDumpContentsExt`. Detailed, it has the addresses that each command accesses.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when the file cannot be written, with a description.
pub fn dump(graph: Arc<Graph>, path: &CStr, next: Chain) -> ZeResult {
    type Desc = extensions::ze_record_replay_graph_ext_dump_desc_t;
    let desc = next.links().find_map(|link| link.input::<Desc>());
    let simple = extensions::ZE_RECORD_REPLAY_GRAPH_EXT_DUMP_MODE_SIMPLE;
    let is_detailed = desc.is_none_or(|desc| desc.mode != simple);
    let text = describe(&graph.content(), is_detailed);
    let path = path::of(path);
    fs::write(&path, text).map_err(|error| {
        let text = format_args!("{}: {error}", path.display());
        described(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT, text)
    })
}

/// The commands, by lists, with an arrow from each to the next one of its list and to those that wait for its event.
fn describe(content: &Content, is_detailed: bool) -> String {
    let mut text = String::from("digraph {\nnode [shape=box]\n");
    for line in 0..content.lines.len() {
        text += &format!("subgraph cluster_{line} {{\nlabel=\"list {line}\"\n");
        let nodes = content.nodes.iter().enumerate();
        for (index, node) in nodes.filter(|(_, node)| node.line == line) {
            let label = label(&*node.command.operation, is_detailed);
            text += &format!("n{index} [label=\"{label}\"]\n");
        }
        text += "}\n";
    }
    for (from, to) in edges(&content.nodes) {
        text += &format!("n{from} -> n{to}\n");
    }
    text + "}\n"
}

/// What a command is.
fn label(operation: &dyn Operation, is_detailed: bool) -> String {
    let uses = operation.uses();
    let mut label = match uses.what.as_str() {
        "" => "synchronization".to_owned(),
        what => what.replace('\\', "\\\\").replace('"', "\\\""),
    };
    if is_detailed {
        let ranges = uses.reads.iter().map(|range| ("reads", range));
        for (what, range) in ranges.chain(uses.writes.iter().map(|range| ("writes", range))) {
            let _ = write!(label, "\\n{what} {:#x} to {:#x}", range.start, range.end);
        }
        for pointer in &uses.pointers {
            let _ = write!(label, "\\npointer {pointer:#x}");
        }
    }
    label
}

/// The pairs of commands, the second of which follows the first.
fn edges(nodes: &[Node]) -> Vec<(usize, usize)> {
    let (mut edges, mut ends, mut signals) = (Vec::new(), HashMap::new(), HashMap::new());
    for (index, Node { line, command }) in nodes.iter().enumerate() {
        edges.extend(ends.insert(line, index).map(|before| (before, index)));
        let waits = command.waits.iter().map(number);
        edges.extend(waits.filter_map(|event| Some((*signals.get(&event)?, index))));
        if let Some(event) = &command.event {
            signals.insert(number(event), index);
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}
