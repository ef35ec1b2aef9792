//! The calling thread.

use std::ops::Range;

use windows_sys::Win32::System::Threading::GetCurrentThreadStackLimits;

/// The addresses of the calling thread's stack, which is committed as it grows to its start.
pub fn own_stack() -> Option<Range<usize>> {
    let (mut start, mut end) = (0, 0);
    // SAFETY: the call writes two addresses, and never fails.
    unsafe { GetCurrentThreadStackLimits(&raw mut start, &raw mut end) };
    Some(start..end)
}
