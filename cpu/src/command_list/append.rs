//! Appending synchronization: barriers, waits, signals, resets, timestamps.

use std::ffi::c_void;
use std::sync::Arc;

use level_zero_sys as sys;
use smallvec::SmallVec;

use super::CommandList;
use crate::abi::arguments::array;
use crate::abi::result::{Answer, ensure};
use crate::engine::{Nothing, Operation, Order};
use crate::event::Event;
use crate::handle::resolve;
use crate::memory::Span;
use crate::operation::{QueryTimestamps, Reset, WriteTimestamp};

/// The events of an append: what it signals and what it waits for, as the caller passed them.
#[derive(Clone, Copy, Debug)]
pub struct Events {
    /// Signalled at the end; may be null.
    pub signal: sys::ze_event_handle_t,
    /// Length of `waits`.
    pub count: u32,
    /// Waited for at the start.
    pub waits: *mut sys::ze_event_handle_t,
}

impl Events {
    /// Resolves them and appends `operation` to `list`.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_SIZE` for a null array with a length, `ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT`
    /// for what is no live event, and what [`CommandList::append`] answers.
    ///
    /// # Safety
    /// `waits` must be null, misaligned or valid for `count` handles.
    pub unsafe fn append<O: Operation + 'static>(
        self,
        list: &CommandList,
        operation: O,
        order: Order,
    ) -> Answer {
        // SAFETY: the caller vouches for the array.
        let handles = unsafe {
            array(
                self.waits.cast_const(),
                self.count,
                sys::ZE_RESULT_ERROR_INVALID_SIZE,
            )?
        };
        let signal = if self.signal.is_null() {
            None
        } else {
            Some(event(self.signal)?)
        };
        let waits: SmallVec<[Arc<Event>; 4]> = handles
            .iter()
            .map(|handle| event(*handle))
            .collect::<Answer<_>>()?;
        list.append(operation, order, signal, &waits)
    }
}

fn event(handle: sys::ze_event_handle_t) -> Answer<Arc<Event>> {
    resolve::<Event>(handle).map_err(|_| sys::ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT)
}

/// An event that is the subject of a command: null is a null handle.
fn subject(handle: sys::ze_event_handle_t) -> Answer<Arc<Event>> {
    ensure(!handle.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE)?;
    event(handle)
}

/// `zeCommandListAppendBarrier`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn append_barrier(list: sys::ze_command_list_handle_t, events: Events) -> Answer {
    let list = resolve::<CommandList>(list)?;
    // SAFETY: the caller vouches for the events.
    unsafe { events.append(&list, Nothing, Order::Strict) }
}

/// `zeCommandListAppendMemoryRangesBarrier`: a barrier for all memory is one for any range.
///
/// # Safety
/// As for [`append_barrier`].
pub unsafe fn append_ranges_barrier(
    list: sys::ze_command_list_handle_t,
    count: u32,
    sizes: *const usize,
    ranges: *mut *const c_void,
    events: Events,
) -> Answer {
    let list = resolve::<CommandList>(list)?;
    ensure(
        !sizes.is_null() && !ranges.is_null(),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
    )?;
    // SAFETY: the caller vouches for the arrays and the events.
    unsafe {
        let sizes = array(sizes, count, sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
        let ranges = array(
            ranges.cast_const(),
            count,
            sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
        )?;
        for (range, size) in ranges.iter().zip(sizes) {
            Span::new(*range as usize, *size)?;
        }
        events.append(&list, Nothing, Order::Strict)
    }
}

/// `zeCommandListAppendWaitOnEvents`: later commands wait, earlier ones are not waited for.
///
/// # Safety
/// As for [`append_barrier`].
pub unsafe fn append_wait(
    list: sys::ze_command_list_handle_t,
    count: u32,
    waits: *mut sys::ze_event_handle_t,
) -> Answer {
    let list = resolve::<CommandList>(list)?;
    ensure(!waits.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    let events = Events {
        signal: std::ptr::null_mut(),
        count,
        waits,
    };
    // SAFETY: the caller vouches for the events.
    unsafe { events.append(&list, Nothing, Order::Gate) }
}

/// `zeCommandListAppendSignalEvent`: after all that has been appended before.
pub fn append_signal(list: sys::ze_command_list_handle_t, event: sys::ze_event_handle_t) -> Answer {
    let list = resolve::<CommandList>(list)?;
    list.append(Nothing, Order::After, Some(subject(event)?), &[])
}

/// `zeCommandListAppendEventReset`: a barrier, so that neither an earlier signal nor a later wait comes in between.
pub fn append_reset(list: sys::ze_command_list_handle_t, event: sys::ze_event_handle_t) -> Answer {
    let list = resolve::<CommandList>(list)?;
    let event = subject(event)?;
    ensure(!event.is_counter(), sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    list.append(Reset(event), Order::Strict, None, &[])
}

/// `zeCommandListAppendWriteGlobalTimestamp`.
///
/// # Safety
/// As for [`append_barrier`].
pub unsafe fn append_timestamp(
    list: sys::ze_command_list_handle_t,
    to: *mut u64,
    events: Events,
) -> Answer {
    let list = resolve::<CommandList>(list)?;
    let span = Span::new(to as usize, size_of::<u64>())?;
    // SAFETY: the caller vouches for the events.
    unsafe { events.append(&list, WriteTimestamp(span), Order::After) }
}

/// `zeCommandListAppendQueryKernelTimestamps`.
///
/// # Safety
/// As for [`append_barrier`].
pub unsafe fn append_query_timestamps(
    list: sys::ze_command_list_handle_t,
    count: u32,
    queried: *mut sys::ze_event_handle_t,
    to: *mut c_void,
    offsets: *const usize,
    events: Events,
) -> Answer {
    let list = resolve::<CommandList>(list)?;
    ensure(
        !queried.is_null(),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
    )?;
    // SAFETY: the caller vouches for the array.
    let handles = unsafe {
        array(
            queried.cast_const(),
            count,
            sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
        )?
    };
    let queried = handles
        .iter()
        .map(|handle| event(*handle))
        .collect::<Answer<Vec<_>>>()?;
    ensure(
        queried.iter().all(|event| event.is_timed()),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
    )?;
    let offsets = (!offsets.is_null())
        .then(|| Span::new(offsets as usize, size_of_val(handles)))
        .transpose()?;
    // With offsets, only the device will know how far the results reach.
    let length = match offsets {
        None => queried.len() * size_of::<sys::ze_kernel_timestamp_result_t>(),
        Some(_) => 0,
    };
    let operation = QueryTimestamps {
        events: queried,
        to: Span::new(to as usize, length)?,
        offsets,
    };
    // SAFETY: the caller vouches for the events.
    unsafe { events.append(&list, operation, Order::After) }
}
