//! `zeMemAllocDevice`, `zeMemAllocHost`, `zeMemAllocShared`.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions::{
    ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY as READ_ONLY,
    ze_external_memmap_sysmem_ext_desc_t as SystemMemory,
    ze_ipc_mem_handle_type_ext_desc_t as HandleType,
    ze_relaxed_allocation_limits_ext_desc_t as RelaxedLimits,
};

use super::platform::import;
use crate::abi::arguments::{Link, check_flags};
use crate::abi::entry::In;
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device::{Device, check_external, check_handle_type};
use crate::memory::{self, MAX_ALIGNMENT, PAGE};
use crate::system::memory::total as total_memory;

/// `ze_device_mem_alloc_flags_t` up to 1.17.
const DEVICE_FLAGS: u32 = 0x7;
/// `ze_host_mem_alloc_flags_t` up to 1.17.
const HOST_FLAGS: u32 = 0x1f;

/// `zeMemAllocDevice`.
pub fn device(
    context: Arc<Context>,
    desc: In<'_, sys::ze_device_mem_alloc_desc_t>,
    size: usize,
    alignment: usize,
    device: &'static Device,
    pointer: &mut *mut c_void,
) -> ZeResult {
    check_flags(desc.flags, DEVICE_FLAGS)?;
    let (extras, kind) = (Extras::read(desc.chain())?, sys::ZE_MEMORY_TYPE_DEVICE);
    *pointer = allocate(&context, kind, size, alignment, &extras, Some(device))?;
    Ok(())
}

/// `zeMemAllocHost`.
pub fn host(
    context: Arc<Context>,
    desc: In<'_, sys::ze_host_mem_alloc_desc_t>,
    size: usize,
    alignment: usize,
    pointer: &mut *mut c_void,
) -> ZeResult {
    check_flags(desc.flags, HOST_FLAGS)?;
    let (mut extras, kind) = (Extras::read(desc.chain())?, sys::ZE_MEMORY_TYPE_HOST);
    extras.read_only = desc.flags & READ_ONLY != 0;
    *pointer = allocate(&context, kind, size, alignment, &extras, None)?;
    Ok(())
}

/// `zeMemAllocShared`; a null device is allowed.
pub fn shared(
    context: Arc<Context>,
    desc: In<'_, sys::ze_device_mem_alloc_desc_t>,
    host_desc: In<'_, sys::ze_host_mem_alloc_desc_t>,
    size: usize,
    alignment: usize,
    device: Option<&'static Device>,
    pointer: &mut *mut c_void,
) -> ZeResult {
    check_flags(desc.flags, DEVICE_FLAGS)?;
    check_flags(host_desc.flags, HOST_FLAGS)?;
    let (extras, kind) = (
        Extras::read(desc.chain().chain(host_desc.chain()))?,
        sys::ZE_MEMORY_TYPE_SHARED,
    );
    *pointer = allocate(&context, kind, size, alignment, &extras, device)?;
    Ok(())
}

/// What the chains of descriptors ask for.
#[derive(Debug, Default)]
struct Extras {
    /// Whether the size limit does not hold.
    relaxed: bool,
    /// Whether the memory can be exported as a file descriptor.
    exports: bool,
    /// The descriptor of any file that can be mapped, which the memory is. The program may close it afterwards.
    imports: Option<i32>,
    /// Whether devices only read it.
    read_only: bool,
    /// The memory of the program that it is.
    adopts: Option<Range<usize>>,
}

impl Extras {
    /// Reads a chain. A structure that changes the kind of memory and is not known (ray tracing, handles of Windows) is an
    /// error rather than ignored.
    fn read<'a>(chain: impl Iterator<Item = Link<'a>>) -> ZeResult<Self> {
        let mut extras = Self::default();
        for link in chain {
            if let Some(export) = link.input::<sys::ze_external_memory_export_desc_t>() {
                check_external(export.flags)?;
                extras.exports |= export.flags != 0;
            } else if let Some(import) = link.input::<sys::ze_external_memory_import_fd_t>() {
                check_external(import.flags)?;
                extras.imports = Some(import.fd);
            } else if let Some(memory) = link.input::<SystemMemory>() {
                extras.adopts = Some(pages_of(memory)?);
            } else if let Some(wanted) = link.input::<HandleType>() {
                check_handle_type(wanted)?;
            } else {
                let flags = relaxed_limits(&link);
                let flags = flags.ok_or(sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION)?;
                let lifts = sys::ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE.0;
                check_flags(flags, lifts)?;
                extras.relaxed |= flags & lifts != 0;
            }
        }
        Ok(extras)
    }
}

/// The flags of a structure that lifts limits: of the extension, or of the experimental one before it, with the same flags.
fn relaxed_limits(link: &Link<'_>) -> Option<u32> {
    let first = link.input::<sys::ze_relaxed_allocation_limits_exp_desc_t>();
    let first = first.map(|limits| limits.flags);
    first.or_else(|| Some(link.input::<RelaxedLimits>()?.flags))
}

/// The pages of the program that a descriptor names.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a range that is not one of whole pages.
fn pages_of(memory: &SystemMemory) -> ZeResult<Range<usize>> {
    let (start, size) = (memory.pSystemMemory.addr(), memory.size as usize);
    let is_whole = start.is_multiple_of(PAGE) && size.is_multiple_of(PAGE) && size > 0;
    let end = start.checked_add(size).filter(|_| is_whole && start > 0);
    Ok(start..end.ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?)
}

fn allocate(
    context: &Context,
    kind: sys::ze_memory_type_t,
    size: usize,
    alignment: usize,
    extras: &Extras,
    device: Option<&'static Device>,
) -> ZeResult<*mut c_void> {
    let aligned = alignment == 0 || alignment.is_power_of_two();
    ensure(
        aligned && alignment <= MAX_ALIGNMENT,
        sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT,
    )?;
    let most = device.map_or_else(|| total_memory() / 2, Device::max_allocation_size);
    let fits = extras.relaxed || size as u64 <= most;
    ensure(size > 0 && fits, sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE)?;
    let is_host = kind == sys::ZE_MEMORY_TYPE_HOST;
    let exhausted = if is_host {
        sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
    } else {
        sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
    };
    let request = memory::Request {
        size,
        alignment,
        kind,
        context: context.id,
        host_access: kind != sys::ZE_MEMORY_TYPE_DEVICE
            || device.is_some_and(|device| device.type_ == sys::ZE_DEVICE_TYPE_CPU),
        device: device.map_or(0, |device| device.handle() as u64),
        share: device.and_then(|device| device.share),
        exportable: extras.exports,
    };
    let invalid = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
    let address = match (extras.imports, &extras.adopts) {
        (Some(descriptor), None) => import(descriptor, &request).ok_or(invalid)?,
        (None, Some(pages)) if size == pages.len() && is_host => {
            memory::adopt(pages.clone(), !extras.read_only, &request).ok_or(invalid)?
        }
        (_, Some(_)) => return Err(invalid),
        (None, None) => memory::allocate(&request).ok_or(exhausted)?,
    };
    Ok(address as *mut c_void)
}
