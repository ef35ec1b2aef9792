//! Virtual memory: address ranges that a program reserves, and physical memory that it maps there.
//!
//! A reservation is an inaccessible mapping, physical memory a memory file, so that one may be mapped in several places.
//! Queries answer for mapped memory as for an allocation of its device, or of the host; commands access it as they do other memory of
//! the process. It stays shared with the children of a fork.

mod pages;
mod physical;
mod reservation;

use std::ffi::c_void;
use std::sync::Arc;

use level_zero_sys as sys;

use self::pages::{check_size, pages};
pub use self::physical::{PhysicalMemory, create, destroy, properties};
pub use self::reservation::{at_fork, find};
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

/// `zeVirtualMemReserve`; if the wanted range is not free, the system chooses another one.
pub fn reserve(
    _: Arc<Context>,
    wanted: *const c_void,
    size: usize,
    pointer: &mut *mut c_void,
) -> ZeResult {
    check_size(size)?;
    let address = reservation::reserve(wanted as usize, size)
        .map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    *pointer = address as *mut c_void;
    Ok(())
}

/// `zeVirtualMemFree`, of a whole reservation in which nothing is mapped.
pub fn free(_: Arc<Context>, pointer: *const c_void, size: usize) -> ZeResult {
    reservation::free(&pages(pointer, size)?)
}

/// `zeVirtualMemMap`, inside a reservation, where nothing is mapped.
pub fn map(
    context: Arc<Context>,
    pointer: *const c_void,
    size: usize,
    physical: Arc<PhysicalMemory>,
    offset: usize,
    access: sys::ze_memory_access_attribute_t,
) -> ZeResult {
    let pages = pages(pointer, size)?;
    ensure(
        offset.is_multiple_of(PAGE),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT,
    )?;
    reservation::map(context.id(), &pages, &physical, offset, access)
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

/// `zeVirtualMemUnmap`, of what one or more calls have mapped, as a whole. Pages of a reservation that are not mapped are an
/// error only if the runtime is strict.
pub fn unmap(_: Arc<Context>, pointer: *const c_void, size: usize) -> ZeResult {
    let pages = pages(pointer, size)?;
    if !is_strict() && reservation::is_unmapped(&pages)? {
        return Ok(());
    }
    reservation::unmap(&pages)
}

/// `zeVirtualMemSetAccessAttribute`, of pages that are mapped, by however many calls. It holds for the host as for the devices.
pub fn set_access(
    _: Arc<Context>,
    pointer: *const c_void,
    size: usize,
    access: sys::ze_memory_access_attribute_t,
) -> ZeResult {
    reservation::set_access(&pages(pointer, size)?, access)
}

/// `zeVirtualMemGetAccessAttribute`: the attribute of the first page, and how many bytes from there on have the same one.
pub fn access(
    _: Arc<Context>,
    pointer: *const c_void,
    size: usize,
    access: &mut sys::ze_memory_access_attribute_t,
    out_size: &mut usize,
) -> ZeResult {
    (*access, *out_size) = reservation::access(&pages(pointer, size)?)?;
    Ok(())
}
