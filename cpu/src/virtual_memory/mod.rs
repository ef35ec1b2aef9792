//! Virtual memory: address ranges that a program reserves, and physical memory that it maps there.
//!
//! A reservation is an inaccessible mapping, physical memory a memory file, so that one may be mapped in several places.
//! Queries answer for mapped memory as for an allocation of its device, or of the host; commands access it as they do other memory of
//! the process. It stays shared with the children of a fork.

mod pages;
mod physical;
mod reservation;

use std::sync::Arc;

use level_zero_sys as sys;

pub use self::physical::{PhysicalMemory, create, destroy, properties};
pub use self::reservation::{access, at_fork, find, free, map, reserve, set_access, unmap};
use crate::abi::result::{ZeResult, ensure};
use crate::abi::strictness::is_strict;
use crate::context::Context;
use crate::device::Device;
use crate::handle::resolve;
use crate::memory::{Export, PAGE};

/// `zeVirtualMemQueryPageSize`: one size, that of the system's pages.
///
/// # Errors
/// `ZE_RESULT_ERROR_UNSUPPORTED_SIZE` for a size of 0, if the runtime is strict.
pub fn page_size(
    _: Arc<Context>,
    _: &'static Device,
    size: usize,
    page_size: &mut usize,
) -> ZeResult {
    ensure(
        size > 0 || !is_strict(),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE,
    )?;
    *page_size = PAGE;
    Ok(())
}

/// For an IPC handle of what one call of [`map`] has mapped at the pointer, or of the physical memory whose handle it is.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for any other pointer.
pub fn export(pointer: usize) -> ZeResult<Export> {
    match resolve::<PhysicalMemory>(pointer as sys::ze_physical_mem_handle_t) {
        Ok(physical) => physical.export(),
        Err(_) => reservation::export(pointer),
    }
}
