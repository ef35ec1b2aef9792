//! The error of sharing memory.

use level_zero_sys as sys;

use crate::abi::result::described;

/// Processes share no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareError;

impl ShareError {
    /// Describes the error for `zeDriverGetLastErrorDescription` and returns its result code.
    pub fn report(self) -> sys::ze_result_t {
        let text = "memory cannot be shared: the CPU runtime does that on Linux only";
        described(sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, text)
    }
}
