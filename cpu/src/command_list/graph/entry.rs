//! The entry points that record a graph, and those that ask for it.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use level_zero_sys as sys;
use level_zero_sys::extensions;

use super::object::{Callback, Graph, State};
use crate::abi::entry::NoExtension;
use crate::abi::result::{ZeResult, ensure};
use crate::abi::strictness::is_strict;
use crate::command_list::capture::check_asynchronous;
use crate::command_list::list::CommandList;
use crate::context::Context;
use crate::handle::{Named, getters, hand_out, register, resolve, retire};

/// The handle of a graph.
pub(super) type Handle = *mut extensions::_ze_graph_handle_t;

const INVALID: sys::ze_result_t = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;

/// The result code that is the answer to a question.
fn answer(yes: bool) -> ZeResult {
    Err(if yes {
        extensions::ZE_RESULT_QUERY_TRUE
    } else {
        extensions::ZE_RESULT_QUERY_FALSE
    })
}

/// `zeGraphCreateExt`.
pub fn create(_: Arc<Context>, _: NoExtension, graph: &mut Handle) -> ZeResult {
    hand_out(Graph::default(), graph)
}

/// `zeGraphDestroyExt`. Executable graphs have what they need, so they may be destroyed later unless the runtime is strict.
///
/// # Errors
/// `ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE` for a graph with executable graphs, if the runtime is strict.
pub fn destroy(handle: Handle) -> ZeResult {
    let graph = resolve::<Graph>(handle)?;
    // The table and this function have it, too.
    let is_instantiated = Arc::strong_count(&graph) > 2;
    ensure(
        !is_instantiated || !is_strict(),
        sys::ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE,
    )?;
    retire::<Graph>(handle)?;
    for Callback { function, data } in graph.abandon(handle as usize) {
        // SAFETY: the program vouches for the function, which takes the value that was passed with it.
        unsafe { function(data as *mut c_void) };
    }
    Ok(())
}

/// `zeCommandListBeginGraphCaptureExt`, into a graph of which `zeCommandListEndGraphCaptureExt` tells the handle.
pub fn begin(list: Named<CommandList>, next: NoExtension) -> ZeResult {
    let graph = Arc::<Graph>::default();
    let handle = register(Arc::clone(&graph))?;
    let begun = begin_into(list, Named(graph, handle), next);
    if begun.is_err() {
        retire::<Graph>(handle)?;
    }
    begun
}

/// `zeCommandListBeginCaptureIntoGraphExt`.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a regular list, one that is capturing, or a graph that is not empty;
/// `ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED` for a synchronous list.
pub fn begin_into(
    Named(list, primary): Named<CommandList>,
    Named(graph, handle): Named<Graph>,
    _: NoExtension,
) -> ZeResult {
    check_asynchronous(list.immediate()?)?;
    ensure(list.graph().is_none(), INVALID)?;
    graph.begin(primary as usize, list.source())?;
    list.capture.store(handle as usize, Ordering::Relaxed);
    Ok(())
}

/// The graph that records a list's commands.
fn recorder(list: &CommandList) -> ZeResult<(usize, Arc<Graph>)> {
    let none = extensions::ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING;
    list.graph().ok_or(none)
}

/// `zeCommandListEndGraphCaptureExt`. The graph is handed out even if it is invalid, so that it can be destroyed.
///
/// # Errors
/// `ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING`; `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a list that did not begin;
/// `ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS` when that does not follow the work of all lists.
pub fn end(
    Named(list, primary): Named<CommandList>,
    _: NoExtension,
    graph: &mut Handle,
) -> ZeResult {
    let (handle, recorder) = recorder(&list)?;
    ensure(recorder.content().primary == primary as usize, INVALID)?;
    *graph = handle as Handle;
    recorder.end(handle)
}

/// `zeCommandListGetGraphExt`.
pub fn graph_of(list: Arc<CommandList>, graph: &mut Handle) -> ZeResult {
    *graph = std::ptr::null_mut();
    *graph = recorder(&list)?.0 as Handle;
    Ok(())
}

/// `zeCommandListIsGraphCaptureEnabledExt`.
pub fn is_capturing(list: Arc<CommandList>) -> ZeResult {
    answer(list.graph().is_some())
}

/// `zeGraphIsEmptyExt`.
pub fn is_empty(graph: Arc<Graph>) -> ZeResult {
    let content = graph.content();
    let invalid = extensions::ZE_RESULT_ERROR_INVALID_GRAPH;
    ensure(content.state != State::Invalid, invalid)?;
    answer(content.nodes.is_empty())
}

/// `zeGraphSetDestructionCallbackExt`.
pub fn add_callback(
    graph: Arc<Graph>,
    function: extensions::zex_mem_graph_free_callback_fn_t,
    data: *mut c_void,
    _: NoExtension,
) -> ZeResult {
    let function = function.ok_or(sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    let data = data as usize;
    graph.add_callback(Callback { function, data });
    Ok(())
}

getters! { Graph {
    /// `zeGraphGetPrimaryCommandListExt`.
    primary: sys::ze_command_list_handle_t = |graph| match graph.content().primary {
        0 => Err(INVALID),
        primary => Ok(primary as sys::ze_command_list_handle_t),
    };
}}
