//! Appending synchronization: barriers, waits, signals, resets, timestamps.

use std::ffi::c_void;
use std::sync::Arc;

use level_zero_sys as sys;
use smallvec::SmallVec;

use super::list::CommandList;
use crate::abi::arguments::input_array;
use crate::abi::result::{ZeResult, ensure};
use crate::engine::{Nothing, Operation, Order};
use crate::event::Event;
use crate::handle::resolve;
use crate::memory::Span;
use crate::operation::{QueryTimestamps, Reset, WriteTimestamp};

/// The events of an append, as the caller passed them.
#[derive(Clone, Copy, Debug)]
pub struct Events {
    /// Signalled at the end; may be null.
    signal: sys::ze_event_handle_t,
    /// Length of `waits`.
    count: u32,
    /// Waited for at the start.
    waits: *mut sys::ze_event_handle_t,
}

impl Events {
    /// The event that is signalled at the end, which may be null, and those that are waited for at the start.
    ///
    /// # Safety
    /// `waits` must be null, misaligned or valid for `count` handles.
    pub unsafe fn new(
        signal: sys::ze_event_handle_t,
        count: u32,
        waits: *mut sys::ze_event_handle_t,
    ) -> Self {
        Self {
            signal,
            count,
            waits,
        }
    }

    /// Without those at the start.
    pub(super) fn at_end(self) -> Self {
        Self { count: 0, ..self }
    }

    /// Without the one at the end.
    pub(super) fn at_start(self) -> Self {
        Self {
            signal: std::ptr::null_mut(),
            ..self
        }
    }

    /// Resolves them and appends `operation` to `list`.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_SIZE` for a null array with a length, `ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT`
    /// for an invalid event, and the errors of [`CommandList::append`].
    pub fn append<O: Operation + 'static>(
        self,
        list: &CommandList,
        operation: O,
        order: Order,
    ) -> ZeResult {
        // SAFETY: who made it vouched for the array.
        let handles = unsafe {
            input_array(
                self.waits.cast_const(),
                self.count,
                sys::ZE_RESULT_ERROR_INVALID_SIZE,
            )?
        };
        let signal = optional_event(self.signal)?;
        let waits: SmallVec<[Arc<Event>; 4]> = handles
            .iter()
            .map(|handle| event(*handle))
            .collect::<ZeResult<_>>()?;
        list.append(operation, order, signal, &waits)
    }
}

/// The event of a handle that may be null.
pub(super) fn optional_event(handle: sys::ze_event_handle_t) -> ZeResult<Option<Arc<Event>>> {
    (!handle.is_null()).then(|| event(handle)).transpose()
}

pub(super) fn event(handle: sys::ze_event_handle_t) -> ZeResult<Arc<Event>> {
    resolve::<Event>(handle).map_err(|_| sys::ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT)
}

/// The event that a command is about, for which null is an error.
fn subject(handle: sys::ze_event_handle_t) -> ZeResult<Arc<Event>> {
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
///
/// # Safety
/// `waits` must be null or have `count` entries.
pub unsafe fn append_wait(
    list: Arc<CommandList>,
    count: u32,
    waits: *mut sys::ze_event_handle_t,
) -> ZeResult {
    ensure(!waits.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    // SAFETY: the caller vouches for the array.
    let events = unsafe { Events::new(std::ptr::null_mut(), count, waits) };
    events.append(&list, Nothing, Order::BeforeLater)
}

/// `zeCommandListAppendSignalEvent`: follows all earlier commands.
pub fn append_signal(list: Arc<CommandList>, event: sys::ze_event_handle_t) -> ZeResult {
    list.append(Nothing, Order::AfterEarlier, Some(subject(event)?), &[])
}

/// `zeCommandListAppendEventReset`: a barrier, which orders it after earlier signals and before later waits.
pub fn append_reset(list: Arc<CommandList>, event: sys::ze_event_handle_t) -> ZeResult {
    let event = subject(event)?;
    ensure(!event.is_counter(), sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    list.append(Reset(event), Order::Barrier, None, &[])
}

/// `zeCommandListAppendWriteGlobalTimestamp`.
pub fn append_timestamp(list: Arc<CommandList>, to: *mut u64, events: Events) -> ZeResult {
    let span = Span::new(to as usize, size_of::<u64>())?;
    events.append(&list, WriteTimestamp(span), Order::AfterEarlier)
}

/// `zeCommandListAppendQueryKernelTimestamps`.
///
/// # Safety
/// `queried` must be null or have `count` entries.
pub unsafe fn append_query_timestamps(
    list: Arc<CommandList>,
    count: u32,
    queried: *mut sys::ze_event_handle_t,
    to: *mut c_void,
    offsets: *const usize,
    events: Events,
) -> ZeResult {
    let null = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ensure(!queried.is_null(), null)?;
    // SAFETY: the caller vouches for the array.
    let handles = unsafe { input_array(queried.cast_const(), count, null) }?;
    let queried = handles
        .iter()
        .map(|handle| event(*handle))
        .collect::<ZeResult<Vec<_>>>()?;
    ensure(
        queried.iter().all(|event| event.is_timed()),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
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
