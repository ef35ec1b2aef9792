//! The error of a stream.

use std::sync::atomic::{AtomicU32, Ordering};

use level_zero_sys as sys;

use crate::abi::result::ZeResult;

/// The first error of a stream's commands since the last synchronization; 0 is none.
#[derive(Default)]
pub struct Fault(AtomicU32);

impl Fault {
    /// Records an error unless there is one already.
    pub fn note(&self, code: sys::ze_result_t) {
        let _ = self
            .0
            .compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Reports the error once.
    pub fn take(&self) -> ZeResult {
        match self.0.swap(0, Ordering::AcqRel) {
            0 => Ok(()),
            code => Err(sys::ze_result_t(code)),
        }
    }
}
