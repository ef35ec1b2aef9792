//! The functions of graphs, which no loader of today's distributions has.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_transmute_annotations
)]

use std::ffi::{CString, c_void};
use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::extensions;

use super::common::{self, Event, List, OK, Result};

pub type Graph = *mut extensions::_ze_graph_handle_t;
pub type Executable = *mut extensions::_ze_executable_graph_handle_t;
pub type Callback = unsafe extern "C" fn(*mut c_void);

const NEXT: *const c_void = ptr::null();

/// Calls a function of these types by its name, which ends in a chain or not.
macro_rules! graph {
    ($name:literal($($argument:expr => $type:ty),* $(,)?)) => {{
        let function: unsafe extern "C" fn($($type),*) -> Result = unsafe { common::newer($name) };
        unsafe { function($($argument),*) }
    }};
}

/// The value, or the error.
fn outcome<T>(code: Result, value: T) -> std::result::Result<T, Result> {
    if code == OK { Ok(value) } else { Err(code) }
}

pub fn create(context: sys::ze_context_handle_t) -> Graph {
    let mut graph = ptr::null_mut();
    let code = graph!(c"zeGraphCreateExt"(
        context => sys::ze_context_handle_t, NEXT => *const c_void, &raw mut graph => *mut Graph));
    outcome(code, graph).unwrap()
}

pub fn destroy(graph: Graph) -> Result {
    graph!(c"zeGraphDestroyExt"(graph => Graph))
}

pub fn begin(list: List) -> Result {
    begin_with(list, NEXT)
}

/// With a chain of extensions.
pub fn begin_with(list: List, next: *const c_void) -> Result {
    graph!(c"zeCommandListBeginGraphCaptureExt"(list => List, next => *const c_void))
}

pub fn begin_into(list: List, graph: Graph) -> Result {
    graph!(c"zeCommandListBeginCaptureIntoGraphExt"(
        list => List, graph => Graph, NEXT => *const c_void))
}

/// The graph is there even if it is invalid.
pub fn end(list: List) -> (Graph, Result) {
    let mut graph = ptr::null_mut();
    let code = graph!(c"zeCommandListEndGraphCaptureExt"(
        list => List, NEXT => *const c_void, &raw mut graph => *mut Graph));
    (graph, code)
}

/// Records what `work` appends to a list.
pub fn record(list: List, work: impl FnOnce()) -> Graph {
    assert_eq!(begin(list), OK);
    work();
    let (graph, code) = end(list);
    outcome(code, graph).unwrap()
}

pub fn is_capturing(list: List) -> bool {
    answer(graph!(c"zeCommandListIsGraphCaptureEnabledExt"(list => List))).unwrap()
}

pub fn is_empty(graph: Graph) -> std::result::Result<bool, Result> {
    answer(graph!(c"zeGraphIsEmptyExt"(graph => Graph)))
}

fn answer(code: Result) -> std::result::Result<bool, Result> {
    match code {
        extensions::ZE_RESULT_QUERY_TRUE => Ok(true),
        extensions::ZE_RESULT_QUERY_FALSE => Ok(false),
        other => Err(other),
    }
}

pub fn graph_of(list: List) -> std::result::Result<Graph, Result> {
    let mut graph = ptr::dangling_mut();
    let code = graph!(c"zeCommandListGetGraphExt"(list => List, &raw mut graph => *mut Graph));
    assert!(code == OK || graph.is_null());
    outcome(code, graph)
}

pub fn primary(graph: Graph) -> std::result::Result<List, Result> {
    let mut list = ptr::null_mut();
    let code =
        graph!(c"zeGraphGetPrimaryCommandListExt"(graph => Graph, &raw mut list => *mut List));
    outcome(code, list)
}

pub fn on_destruction(graph: Graph, callback: Option<Callback>, data: *mut c_void) -> Result {
    graph!(c"zeGraphSetDestructionCallbackExt"(
        graph => Graph, callback => Option<Callback>, data => *mut c_void, NEXT => *const c_void))
}

pub fn instantiate(graph: Graph) -> std::result::Result<Executable, Result> {
    instantiate_with(graph, NEXT)
}

pub fn instantiate_with(
    graph: Graph,
    next: *const c_void,
) -> std::result::Result<Executable, Result> {
    let mut executable = ptr::null_mut();
    let code = graph!(c"zeGraphInstantiateExt"(
        graph => Graph, next => *const c_void, &raw mut executable => *mut Executable));
    outcome(code, executable)
}

pub fn append(list: List, executable: Executable, signal: Event, waits: &[Event]) -> Result {
    graph!(c"zeCommandListAppendGraphExt"(
        list => List, executable => Executable, NEXT => *const c_void, signal => Event,
        waits.len() as u32 => u32, common::array(waits) => *mut Event))
}

pub fn source(executable: Executable) -> Graph {
    let mut graph = ptr::null_mut();
    let code = graph!(c"zeExecutableGraphGetSourceGraphExt"(
        executable => Executable, &raw mut graph => *mut Graph));
    outcome(code, graph).unwrap()
}

pub fn destroy_executable(executable: Executable) -> Result {
    graph!(c"zeExecutableGraphDestroyExt"(executable => Executable))
}

pub fn dump(graph: Graph, path: &str, is_simple: bool) -> Result {
    let desc = extensions::ze_record_replay_graph_ext_dump_desc_t {
        stype: extensions::ZE_STRUCTURE_TYPE_RECORD_REPLAY_GRAPH_EXT_DUMP_DESC,
        pNext: ptr::null(),
        mode: u32::from(is_simple),
    };
    let path = CString::new(path).unwrap();
    let next = if is_simple {
        (&raw const desc).cast()
    } else {
        NEXT
    };
    graph!(c"zeGraphDumpContentsExt"(
        graph => Graph, path.as_ptr() => *const std::ffi::c_char, next => *const c_void))
}

/// A counter-based event without a pool.
pub fn counter(context: sys::ze_context_handle_t, flags: u32) -> Event {
    let desc = extensions::ze_event_counter_based_desc_t {
        stype: extensions::ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC,
        pNext: ptr::null(),
        flags: flags | 1,
        signal: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
        wait: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
    };
    let mut event = ptr::null_mut();
    let code = graph!(c"zeEventCounterBasedCreate"(
        context => sys::ze_context_handle_t, common::device() => sys::ze_device_handle_t,
        &raw const desc => *const extensions::ze_event_counter_based_desc_t,
        &raw mut event => *mut Event));
    outcome(code, event).unwrap()
}
