//! What a list tells about itself.

use level_zero_sys as sys;

use super::{CommandList, Role};
use crate::answer::Answer;
use crate::arguments::output;
use crate::device;
use crate::handle::resolve;

/// Writes what `read` takes from a list to `place`.
///
/// # Safety
/// `place` must be null, misaligned or valid.
unsafe fn tell<T>(
    list: sys::ze_command_list_handle_t,
    place: *mut T,
    read: impl FnOnce(&CommandList) -> Answer<T>,
) -> Answer {
    let list = resolve::<CommandList>(list)?;
    // SAFETY: the caller vouches for the pointer.
    let place = unsafe { output(place) }?;
    *place = read(&list)?;
    Ok(())
}

/// Defines a getter for each line: its function, what it writes, and how it is read.
macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $read:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The place must be null, misaligned or valid.
        pub unsafe fn $name(list: sys::ze_command_list_handle_t, place: *mut $type) -> Answer {
            // SAFETY: the caller vouches for the pointer.
            unsafe { tell(list, place, $read) }
        }
    )*};
}

getters! {
    /// `zeCommandListGetDeviceHandle`.
    device_handle: sys::ze_device_handle_t = |_| Ok(device::handle());
    /// `zeCommandListGetContextHandle`.
    context_handle: sys::ze_context_handle_t =
        |list| Ok(list.context_handle as sys::ze_context_handle_t);
    /// `zeCommandListGetOrdinal`.
    ordinal: u32 = |_| Ok(0);
    /// `zeCommandListGetFlags`, of a regular list.
    creation_flags: u32 = |list| list.recording().map(|_| list.flags);
    /// `zeCommandListIsImmediate`.
    is_immediate: sys::ze_bool_t =
        |list| Ok(sys::ze_bool_t::from(matches!(list.role, Role::Immediate(_))));
    /// `zeCommandListImmediateGetIndex`.
    index: u32 = |list| Ok(list.immediate()?.desc.index);
    /// `zeCommandListImmediateGetFlags`.
    queue_flags: u32 = |list| Ok(list.immediate()?.desc.flags);
    /// `zeCommandListImmediateGetMode`.
    mode: sys::ze_command_queue_mode_t = |list| Ok(list.immediate()?.desc.mode);
    /// `zeCommandListImmediateGetPriority`.
    priority: sys::ze_command_queue_priority_t = |list| Ok(list.immediate()?.desc.priority);
}
