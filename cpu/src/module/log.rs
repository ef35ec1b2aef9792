//! Build logs.

use std::ffi::c_char;
use std::sync::Arc;

use level_zero_sys as sys;

use crate::abi::result::{ZeResult, ensure};
use crate::handle::{hand_out, object};

object!(BuildLog, sys::_ze_module_build_log_handle_t, ModuleBuildLog);

/// The text of a build log.
pub struct BuildLog(String);

impl BuildLog {
    /// Creates a log with this text for the caller, if it requested one.
    pub fn hand_out(
        text: String,
        place: Option<&mut sys::ze_module_build_log_handle_t>,
    ) -> ZeResult {
        place.map_or(Ok(()), |place| hand_out(Self(text), place))
    }
}

/// `zeModuleBuildLogGetString`.
///
/// # Safety
/// `place` must be null or have room for `*size` bytes.
pub unsafe fn text(log: Arc<BuildLog>, size: &mut usize, place: *mut c_char) -> ZeResult {
    // SAFETY: the caller vouches for the pointers.
    unsafe { copy_text(&log.0, size, place) }
}

/// Copies a text to the caller as a C string, after its size with the terminating null.
///
/// # Safety
/// `place` must be null or have room for `*size` bytes.
pub unsafe fn copy_text(text: &str, size: &mut usize, place: *mut c_char) -> ZeResult {
    let room = *size;
    *size = text.len() + 1;
    if place.is_null() || room == 0 {
        return Ok(());
    }
    ensure(room > text.len(), sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
    // SAFETY: there is room for the text and its null; the two do not overlap, as the text is ours.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), place, text.len());
        place.add(text.len()).write(0);
    }
    Ok(())
}
