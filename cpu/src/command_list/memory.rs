//! Appending copies and fills.

use std::ffi::c_void;
use std::slice;
use std::sync::Arc;

use level_zero_sys as sys;

use super::append::Events;
use super::list::CommandList;
use crate::abi::entry::NoExtension;
use crate::abi::result::{ZeResult, ensure};
use crate::abi::strictness::is_strict;
use crate::context::Context;
use crate::device;
use crate::device::Device;
use crate::engine::{Nothing, Order};
use crate::memory::Span;
use crate::operation::{Copy, Fill, Layout, Region, RegionCopy};

/// The last value of `ze_memory_advice_t` in specification 1.17.
const LAST_ADVICE: u32 = 11;

/// `zeCommandListAppendMemoryCopy`.
pub fn append_copy(
    list: Arc<CommandList>,
    to: *mut c_void,
    from: *const c_void,
    size: usize,
    events: Events,
) -> ZeResult {
    let copy = Copy::new(
        Span::new(to as usize, size)?,
        Span::new(from as usize, size)?,
    );
    events.append(&list, copy, Order::Unordered)
}

/// `zeCommandListAppendMemoryCopyWithParameters`.
pub fn append_copy_with_parameters(
    list: Arc<CommandList>,
    to: *mut c_void,
    from: *const c_void,
    size: usize,
    _: NoExtension,
    events: Events,
) -> ZeResult {
    append_copy(list, to, from, size, events)
}

/// `zeCommandListAppendMemoryCopyFromContext`: all contexts share one address space.
pub fn append_copy_from_context(
    list: Arc<CommandList>,
    to: *mut c_void,
    source: Arc<Context>,
    from: *const c_void,
    size: usize,
    events: Events,
) -> ZeResult {
    let (to, from) = (
        Span::new(to as usize, size)?,
        Span::new(from as usize, size)?,
    );
    let copy = Copy::new(to, from).from_context(source.id);
    events.append(&list, copy, Order::Unordered)
}

/// `zeCommandListAppendMemoryFill`; the pattern is read before the call returns. As Intel's driver does, the runtime accepts
/// patterns of any length and alignment, longer than its queue groups announce, and cuts the last repetition.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_SIZE` for an empty pattern. If the runtime is strict, also for lengths that the specification
/// does not allow, and `ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT` for memory that is not aligned to the pattern's length.
///
/// # Safety
/// `pattern` must be null or refer to `pattern_size` bytes.
pub unsafe fn append_fill(
    list: Arc<CommandList>,
    to: *mut c_void,
    pattern: *const c_void,
    pattern_size: usize,
    size: usize,
    events: Events,
) -> ZeResult {
    ensure(
        !to.is_null() && !pattern.is_null(),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
    )?;
    ensure(
        pattern_size > 0 && isize::try_from(pattern_size).is_ok(),
        sys::ZE_RESULT_ERROR_INVALID_SIZE,
    )?;
    if is_strict() {
        ensure(
            pattern_size.is_power_of_two()
                && pattern_size <= device::MAX_FILL_PATTERN
                && size.is_multiple_of(pattern_size),
            sys::ZE_RESULT_ERROR_INVALID_SIZE,
        )?;
        ensure(
            (to as usize).is_multiple_of(pattern_size),
            sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT,
        )?;
    }
    let span = Span::new(to as usize, size)?;
    // Only as much as is used.
    let pattern_size = pattern_size.min(size.max(1));
    // SAFETY: the caller vouches for the pattern.
    let pattern = unsafe { slice::from_raw_parts(pattern.cast::<u8>(), pattern_size) };
    events.append(&list, Fill::new(span, pattern), Order::Unordered)
}

/// `zeCommandListAppendMemoryFillWithParameters`.
///
/// # Errors
/// As for [`append_fill`].
///
/// # Safety
/// As for [`append_fill`].
pub unsafe fn append_fill_with_parameters(
    list: Arc<CommandList>,
    to: *mut c_void,
    pattern: *const c_void,
    pattern_size: usize,
    size: usize,
    _: NoExtension,
    events: Events,
) -> ZeResult {
    // SAFETY: the caller vouches for the pattern.
    unsafe { append_fill(list, to, pattern, pattern_size, size, events) }
}

/// One side of `zeCommandListAppendMemoryCopyRegion`, as the caller passed it.
#[derive(Clone, Copy, Debug)]
pub struct RegionArgument<'a> {
    /// Address of the array.
    pub base: *const c_void,
    /// The box in it.
    pub region: &'a sys::ze_copy_region_t,
    /// Bytes from row to row.
    pub pitch: u32,
    /// Bytes from slice to slice.
    pub slice_pitch: u32,
}

impl RegionArgument<'_> {
    fn locate(self) -> ZeResult<Region> {
        let layout = Layout {
            pitch: self.pitch as usize,
            slice_pitch: self.slice_pitch as usize,
            region: self.region.into(),
        };
        Region::new(self.base as usize, &layout)
    }
}

/// `zeCommandListAppendMemoryCopyRegion`.
pub fn append_copy_region(
    list: Arc<CommandList>,
    to: RegionArgument<'_>,
    from: RegionArgument<'_>,
    events: Events,
) -> ZeResult {
    let copy = RegionCopy::new(to.locate()?, from.locate()?)?;
    events.append(&list, copy, Order::Unordered)
}

/// `zeCommandListAppendMemoryPrefetch`: no work, as there is one memory.
pub fn append_prefetch(list: Arc<CommandList>, pointer: *const c_void, size: usize) -> ZeResult {
    Span::new(pointer as usize, size)?;
    list.append(Nothing, Order::Unordered, None, &[])
}

/// `zeCommandListAppendMemAdvise`: no work, as there is one memory.
pub fn append_advice(
    list: Arc<CommandList>,
    _: &'static Device,
    pointer: *const c_void,
    size: usize,
    advice: sys::ze_memory_advice_t,
) -> ZeResult {
    ensure(
        advice.0 <= LAST_ADVICE,
        sys::ZE_RESULT_ERROR_INVALID_ENUMERATION,
    )?;
    Span::new(pointer as usize, size)?;
    list.append(Nothing, Order::Unordered, None, &[])
}
