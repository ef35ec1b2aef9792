//! Memory as a file descriptor: `ze_external_memory_export_desc_t`, `..._export_fd_t` and `..._import_fd_t`.
//!
//! Exported memory has a memory file of its own, which begins with it: any program can map it. The runtime makes no dma-bufs.

use std::fs::File;
use std::os::fd::IntoRawFd;

use level_zero_sys as sys;
use zeusm_process::duplicate;

use crate::abi::result::{ZeResult, ensure};
use crate::memory::{self, Allocation};

/// A new descriptor of the memory's file, which belongs to the caller.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for memory that was not allocated for export, or from another file; the result code
/// for the system's error, which is described.
pub fn export(allocation: &Allocation) -> ZeResult<i32> {
    ensure(
        allocation.is_exportable(),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
    )?;
    let export = allocation.export()?;
    let file = duplicate(export.descriptor).ok_or(sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    Ok(file.into_raw_fd())
}

/// Maps the file that `descriptor` names, which the program may close afterwards, as the memory that `request` describes.
/// Returns its address.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a descriptor of nothing that can be mapped, or of a file that is too short.
pub fn import(descriptor: i32, request: &memory::Request) -> ZeResult<usize> {
    let file: Option<File> = duplicate(descriptor);
    let address = file.and_then(|file| memory::import_file(&file, request));
    address.ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}
