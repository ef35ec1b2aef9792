//! Runs operations on the calling thread.

use std::panic::{AssertUnwindSafe, catch_unwind};

use level_zero_sys as sys;

use super::operation::Operation;
use crate::abi::result::ZeResult;
use crate::check::DeviceCode;

/// Runs a part; a panic becomes an error of the command.
pub fn run(operation: &(impl Operation + ?Sized), part: usize) -> ZeResult {
    let _device_code = DeviceCode::begin();
    catch_unwind(AssertUnwindSafe(|| operation.run(part)))
        .unwrap_or(Err(sys::ZE_RESULT_ERROR_UNKNOWN))
}

/// Runs all parts, one after another.
pub fn run_all(operation: &(impl Operation + ?Sized)) -> ZeResult {
    let parts = 0..operation.parts().max(1);
    parts
        .map(|part| run(operation, part))
        .fold(Ok(()), ZeResult::and)
}
