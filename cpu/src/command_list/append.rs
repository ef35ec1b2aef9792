//! Appending synchronization: barriers, waits, signals, resets, timestamps.

use std::ffi::c_void;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions;
use level_zero_sys::ze_event_handle_t as Handle;
use smallvec::SmallVec;

use super::list::CommandList;
use crate::abi::arguments::input_array;
use crate::abi::entry::{Argument, NoExtension};
use crate::abi::result::{ZeResult, ensure};
use crate::engine::{Nothing, Operation, Order};
use crate::event::Event;
use crate::handle::resolve;
use crate::memory::Span;
use crate::operation::{HostFunction, QueryTimestamps, Reset, WriteTimestamp};

type Waits = SmallVec<[Arc<Event>; 4]>;

/// The events of an append.
pub struct Events {
    /// Signalled at the end.
    pub signal: Option<Arc<Event>>,
    /// Waited for at the start.
    pub waits: Waits,
}

/// `ZE_RESULT_ERROR_INVALID_SIZE` for a null array with a length, `ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT` for an invalid
/// event.
impl Argument<(Handle, u32, *mut Handle)> for Events {
    unsafe fn check((signal, count, waits): (Handle, u32, *mut Handle)) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the array.
        let waits = unsafe { input_array(waits, count, sys::ZE_RESULT_ERROR_INVALID_SIZE) }?;
        Ok(Self {
            signal: optional_event(signal)?,
            waits: all(waits)?,
        })
    }
}

impl Events {
    /// Appends `operation` to `list`.
    ///
    /// # Errors
    /// As for [`CommandList::append`].
    pub fn append<O: Operation + 'static>(
        self,
        list: &CommandList,
        operation: O,
        order: Order,
    ) -> ZeResult {
        list.append(operation, order, self.signal, &self.waits)
    }
}

/// The event of a handle that may be null.
pub(super) fn optional_event(handle: Handle) -> ZeResult<Option<Arc<Event>>> {
    (!handle.is_null()).then(|| event(handle)).transpose()
}

pub(super) fn event(handle: Handle) -> ZeResult<Arc<Event>> {
    resolve::<Event>(handle).map_err(|_| sys::ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT)
}

fn all(handles: &[Handle]) -> ZeResult<Waits> {
    handles.iter().map(|handle| event(*handle)).collect()
}

/// The event that a command is about, for which null is an error.
fn subject(handle: Handle) -> ZeResult<Arc<Event>> {
    ensure(!handle.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE)?;
    event(handle)
}

/// `zeCommandListAppendBarrier`.
pub fn append_barrier(list: Arc<CommandList>, events: Events) -> ZeResult {
    events.append(&list, Nothing, Order::Barrier)
}

/// `zeCommandListAppendMemoryRangesBarrier`: a barrier for all memory includes any range.
///
/// # Safety
/// `sizes` and `ranges` must be null or have `count` entries.
pub unsafe fn append_ranges_barrier(
    list: Arc<CommandList>,
    count: u32,
    sizes: *const usize,
    ranges: *mut *const c_void,
    events: Events,
) -> ZeResult {
    let null = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ensure(!sizes.is_null() && !ranges.is_null(), null)?;
    // SAFETY: the caller vouches for the arrays.
    let (sizes, ranges) = unsafe {
        (
            input_array(sizes, count, null)?,
            input_array(ranges.cast_const(), count, null)?,
        )
    };
    for (range, size) in ranges.iter().zip(sizes) {
        Span::new(*range as usize, *size)?;
    }
    events.append(&list, Nothing, Order::Barrier)
}

/// `zeCommandListAppendWaitOnEvents`: later commands follow the wait, which does not follow earlier ones.
pub fn append_wait(list: Arc<CommandList>, waits: &[Handle]) -> ZeResult {
    list.append(Nothing, Order::BeforeLater, None, &all(waits)?)
}

/// `zeCommandListAppendSignalEvent`: follows all earlier commands.
pub fn append_signal(list: Arc<CommandList>, event: Handle) -> ZeResult {
    list.append(Nothing, Order::AfterEarlier, Some(subject(event)?), &[])
}

/// `zeCommandListAppendEventReset`: a barrier, which orders it after earlier signals and before later waits.
pub fn append_reset(list: Arc<CommandList>, event: Handle) -> ZeResult {
    let event = subject(event)?;
    ensure(!event.is_counter(), sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    list.append(Reset(event), Order::Barrier, None, &[])
}

/// `zeCommandListAppendHostFunction`.
///
/// # Safety
/// `function` may be called with `data` from any thread, as often as the command is executed.
pub unsafe fn append_host_function(
    list: Arc<CommandList>,
    function: extensions::ze_host_function_callback_t,
    data: *mut c_void,
    _: NoExtension,
    events: Events,
) -> ZeResult {
    let function = function.ok_or(sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    // SAFETY: the caller vouches for both.
    let operation = unsafe { HostFunction::new(function, data) };
    events.append(&list, operation, Order::Unordered)
}

/// `zeCommandListAppendWriteGlobalTimestamp`.
pub fn append_timestamp(list: Arc<CommandList>, to: *mut u64, events: Events) -> ZeResult {
    let span = Span::new(to as usize, size_of::<u64>())?;
    events.append(&list, WriteTimestamp(span), Order::AfterEarlier)
}

/// `zeCommandListAppendQueryKernelTimestamps`.
pub fn append_query_timestamps(
    list: Arc<CommandList>,
    handles: &[Handle],
    to: *mut c_void,
    offsets: *const usize,
    events: Events,
) -> ZeResult {
    let queried = all(handles)?.into_vec();
    ensure(
        queried.iter().all(|event| event.is_timed()),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
    )?;
    // An instance of a graph has an event of its own in place of an internal one.
    ensure(
        list.graph().is_none() || !queried.iter().any(|event| event.is_internal()),
        extensions::ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED,
    )?;
    let offsets = (!offsets.is_null())
        .then(|| Span::new(offsets as usize, size_of_val(handles)))
        .transpose()?;
    // With offsets, the extent of the results is known only at execution.
    let length = match offsets {
        None => queried.len() * size_of::<sys::ze_kernel_timestamp_result_t>(),
        Some(_) => 0,
    };
    let to = Span::new(to as usize, length)?;
    let operation = QueryTimestamps::new(queried, to, offsets);
    events.append(&list, operation, Order::AfterEarlier)
}
