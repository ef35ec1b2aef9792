//! `zeMemAllocDevice`, `zeMemAllocHost`, `zeMemAllocShared`.

use std::ffi::c_void;
use std::sync::Arc;

use level_zero_sys as sys;

use super::external;
use crate::abi::arguments::{Link, check_flags};
use crate::abi::entry::In;
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device::{Device, check_external};
use crate::memory::{self, MAX_ALIGNMENT};
use crate::system::memory::max_allocation_size;

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
    let request = Request {
        size,
        alignment,
        extras: Extras::read(desc.chain())?,
        device: Some(device),
    };
    *pointer = request.serve(&context, sys::ZE_MEMORY_TYPE_DEVICE)?;
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
    let request = Request {
        size,
        alignment,
        extras: Extras::read(desc.chain())?,
        device: None,
    };
    *pointer = request.serve(&context, sys::ZE_MEMORY_TYPE_HOST)?;
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
    let request = Request {
        size,
        alignment,
        extras: Extras::read(desc.chain().chain(host_desc.chain()))?,
        device,
    };
    *pointer = request.serve(&context, sys::ZE_MEMORY_TYPE_SHARED)?;
    Ok(())
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
    fn read<'a>(chain: impl Iterator<Item = Link<'a>>) -> ZeResult<Self> {
        let mut extras = Self::default();
        for link in chain {
            match link.stype() {
                sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC => {
                    let export = link.input::<sys::ze_external_memory_export_desc_t>();
                    let flags = export.map_or(0, |export| export.flags);
                    check_external(flags)?;
                    extras.exports |= flags != 0;
                }
                sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD => {
                    if let Some(import) = link.input::<sys::ze_external_memory_import_fd_t>() {
                        check_external(import.flags)?;
                        extras.imports = Some(import.fd);
                    }
                }
                _ => {
                    let limits = link.input::<sys::ze_relaxed_allocation_limits_exp_desc_t>();
                    let limits = limits.ok_or(sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION)?;
                    let lifts = sys::ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE.0;
                    check_flags(limits.flags, lifts)?;
                    extras.relaxed |= limits.flags & lifts != 0;
                }
            }
        }
        Ok(extras)
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
