//! Memory of descriptors, which a program passes or gets.

use std::os::fd::IntoRawFd;

use level_zero_sys as sys;
use zeusm_process::duplicate;

use crate::abi::result::ZeResult;
use crate::memory::{self, Allocation, Request};

/// Maps the file that a descriptor names, which the program may close afterwards, as the memory that `request` describes;
/// `None` for a descriptor of nothing that can be mapped.
pub fn import(descriptor: i32, request: &Request) -> Option<usize> {
    memory::import_file(&duplicate(descriptor)?, request)
}

/// A new descriptor of an allocation's file.
///
/// # Errors
/// The result code for the system's error, which is described.
pub fn export(allocation: &Allocation) -> ZeResult<i32> {
    let file = duplicate(allocation.export()?.descriptor);
    let file = file.ok_or(sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    Ok(file.into_raw_fd())
}
