//! `zeMemAllocDevice`, `zeMemAllocHost`, `zeMemAllocShared`.

use std::ffi::c_void;

use level_zero_sys as sys;

use super::external;
use crate::abi::arguments::{chain, check_flags, input_structure, output};
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device::{self, Device, check_external};
use crate::handle::resolve;
use crate::memory::{self, MAX_ALIGNMENT};
use crate::system::memory::max_allocation_size;

/// `ze_device_mem_alloc_flags_t` up to 1.17.
const DEVICE_FLAGS: u32 = 0x7;
/// `ze_host_mem_alloc_flags_t` up to 1.17.
const HOST_FLAGS: u32 = 0x1f;

/// `zeMemAllocDevice`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn device(
    context: sys::ze_context_handle_t,
    desc: *const sys::ze_device_mem_alloc_desc_t,
    size: usize,
    alignment: usize,
    device: sys::ze_device_handle_t,
    pointer: *mut *mut c_void,
) -> ZeResult {
    let context = resolve::<Context>(context)?;
    let device = device::find(device)?;
    let mut extras = Extras::default();
    // SAFETY: the caller vouches for the pointers.
    let pointer = unsafe {
        device_desc(desc, &mut extras)?;
        output(pointer)?
    };
    let request = Request {
        size,
        alignment,
        extras,
        device: Some(device),
    };
    *pointer = request.serve(&context, sys::ZE_MEMORY_TYPE_DEVICE)?;
    Ok(())
}

/// `zeMemAllocHost`.
///
/// # Safety
/// As for [`device()`].
pub unsafe fn host(
    context: sys::ze_context_handle_t,
    desc: *const sys::ze_host_mem_alloc_desc_t,
    size: usize,
    alignment: usize,
    pointer: *mut *mut c_void,
) -> ZeResult {
    let context = resolve::<Context>(context)?;
    let mut extras = Extras::default();
    // SAFETY: the caller vouches for the pointers.
    let pointer = unsafe {
        host_desc(desc, &mut extras)?;
        output(pointer)?
    };
    let request = Request {
        size,
        alignment,
        extras,
        device: None,
    };
    *pointer = request.serve(&context, sys::ZE_MEMORY_TYPE_HOST)?;
    Ok(())
}

/// `zeMemAllocShared`; a null device is allowed.
///
/// # Safety
/// As for [`device()`].
pub unsafe fn shared(
    context: sys::ze_context_handle_t,
    device_description: *const sys::ze_device_mem_alloc_desc_t,
    host_description: *const sys::ze_host_mem_alloc_desc_t,
    size: usize,
    alignment: usize,
    device: sys::ze_device_handle_t,
    pointer: *mut *mut c_void,
) -> ZeResult {
    let context = resolve::<Context>(context)?;
    let device = (!device.is_null())
        .then(|| device::find(device))
        .transpose()?;
    let mut extras = Extras::default();
    // SAFETY: the caller vouches for the pointers.
    let pointer = unsafe {
        device_desc(device_description, &mut extras)?;
        host_desc(host_description, &mut extras)?;
        output(pointer)?
    };
    let request = Request {
        size,
        alignment,
        extras,
        device,
    };
    *pointer = request.serve(&context, sys::ZE_MEMORY_TYPE_SHARED)?;
    Ok(())
}

/// Checks a device descriptor and reads its chain into `extras`.
///
/// # Safety
/// As for [`device()`].
unsafe fn device_desc(
    desc: *const sys::ze_device_mem_alloc_desc_t,
    extras: &mut Extras,
) -> ZeResult {
    // SAFETY: the caller vouches for the pointer.
    let desc = unsafe { input_structure(desc) }?;
    check_flags(desc.flags, DEVICE_FLAGS)?;
    // SAFETY: the caller vouches for the chain.
    unsafe { extras.read(desc.pNext) }
}

/// Checks a host descriptor and reads its chain into `extras`.
///
/// # Safety
/// As for [`device()`].
unsafe fn host_desc(desc: *const sys::ze_host_mem_alloc_desc_t, extras: &mut Extras) -> ZeResult {
    // SAFETY: the caller vouches for the pointer.
    let desc = unsafe { input_structure(desc) }?;
    check_flags(desc.flags, HOST_FLAGS)?;
    // SAFETY: the caller vouches for the chain.
    unsafe { extras.read(desc.pNext) }
}

/// What the chains of descriptors ask for.
#[derive(Debug, Default)]
struct Extras {
    /// Whether the size limit does not hold.
    relaxed: bool,
    /// Whether the memory can be exported as a file descriptor.
    exports: bool,
    /// The file descriptor of the memory.
    imports: Option<i32>,
}

impl Extras {
    /// Reads a chain. A structure that changes the kind of memory and is not known (ray tracing, handles of Windows) is an
    /// error rather than ignored.
    ///
    /// # Safety
    /// As for [`chain`].
    unsafe fn read(&mut self, next: *const c_void) -> ZeResult {
        // SAFETY: the caller vouches for the chain.
        for link in unsafe { chain(next) } {
            match link.stype() {
                sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC => {
                    let export = link.input::<sys::ze_external_memory_export_desc_t>();
                    let flags = export.map_or(0, |export| export.flags);
                    check_external(flags)?;
                    self.exports |= flags != 0;
                }
                sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD => {
                    if let Some(import) = link.input::<sys::ze_external_memory_import_fd_t>() {
                        check_external(import.flags)?;
                        self.imports = Some(import.fd);
                    }
                }
                _ => {
                    let limits = link.input::<sys::ze_relaxed_allocation_limits_exp_desc_t>();
                    let limits = limits.ok_or(sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION)?;
                    let lifts = sys::ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE.0;
                    check_flags(limits.flags, lifts)?;
                    self.relaxed |= limits.flags & lifts != 0;
                }
            }
        }
        Ok(())
    }
}

struct Request {
    size: usize,
    alignment: usize,
    extras: Extras,
    device: Option<&'static Device>,
}

impl Request {
    fn serve(&self, context: &Context, kind: sys::ze_memory_type_t) -> ZeResult<*mut c_void> {
        let aligned = self.alignment == 0 || self.alignment.is_power_of_two();
        ensure(
            aligned && self.alignment <= MAX_ALIGNMENT,
            sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT,
        )?;
        let most = self
            .device
            .map_or_else(max_allocation_size, Device::max_allocation_size);
        let fits = self.extras.relaxed || self.size as u64 <= most;
        ensure(self.size > 0 && fits, sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE)?;
        let exhausted = if kind == sys::ZE_MEMORY_TYPE_HOST {
            sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
        } else {
            sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
        };
        let request = memory::Request {
            size: self.size,
            alignment: self.alignment,
            kind,
            context: context.id(),
            host_access: kind != sys::ZE_MEMORY_TYPE_DEVICE
                || self
                    .device
                    .is_some_and(|device| device.device_type() == sys::ZE_DEVICE_TYPE_CPU),
            device: self.device.map_or(0, |device| device.handle() as u64),
            share: self.device.and_then(Device::share),
            exportable: self.extras.exports,
        };
        let address = match self.extras.imports {
            Some(descriptor) => external::import(descriptor, &request)?,
            None => memory::allocate(&request).ok_or(exhausted)?,
        };
        Ok(address as *mut c_void)
    }
}
