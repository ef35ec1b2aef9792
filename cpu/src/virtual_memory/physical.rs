//! Physical memory, which is used once it is mapped.

use std::ffi::c_void;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use level_zero_sys as sys;
use level_zero_sys::extensions;
use zeusm_process::{Lazy, OwnFile, duplicate};

use super::check_size;
use crate::abi::arguments::{chain, check_flags, input_structure, output, output_structure};
use crate::abi::result::{ZeResult, describe, ensure};
use crate::context::Context;
use crate::device::{self, Device, check_external};
use crate::handle::{object, register, resolve, retire};
use crate::memory::{
    Export, Mapping, Record, Share, accounting, count_file, exports, next_id, own_memory_file,
};

/// `ze_physical_mem_flags_t` up to 1.17.
const FLAGS: u32 = 0x3;

object!(
    PhysicalMemory,
    sys::_ze_physical_mem_handle_t,
    PhysicalMemory
);

/// Physical memory. It lives until its handle is destroyed and it is mapped nowhere.
#[derive(Debug)]
pub struct PhysicalMemory {
    id: u64,
    file: Arc<OwnFile>,
    size: usize,
    share: Option<&'static Share>,
    /// Whether the file is that of a descriptor that the program passed.
    is_imported: bool,
    /// The id of its export.
    exported: Lazy<u64>,
}

impl PhysicalMemory {
    fn next_id() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// # Errors
    /// `ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY` when the machine, or the device's share of it, has not enough; the system's error
    /// for its file, described.
    fn new(size: usize, share: Option<&'static Share>) -> ZeResult<Self> {
        ensure(
            accounting::reserve(size, share),
            sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
        )?;
        match own_memory_file(exports::file_length(size)).map(Arc::new) {
            Ok(file) => {
                count_file(&file);
                Ok(Self {
                    id: Self::next_id(),
                    file,
                    size,
                    share,
                    is_imported: false,
                    exported: Lazy::new(),
                })
            }
            Err(error) => {
                accounting::release(size, share);
                Err(error.report())
            }
        }
    }

    /// The first `size` bytes of the file that `descriptor` names, which the program may close afterwards; `None` for a
    /// descriptor of nothing that can be mapped, or of a file that is too short.
    fn import(descriptor: i32, size: usize) -> Option<Self> {
        let file = duplicate(descriptor)?;
        Mapping::of_external(&file, size, 0)?;
        Some(Self {
            id: Self::next_id(),
            file: Arc::new(OwnFile::new(file).ok()?),
            size,
            share: None,
            is_imported: true,
            exported: Lazy::new(),
        })
    }

    /// Exports all of it; returns the export with its id. The export lives as long as the memory.
    ///
    /// # Errors
    /// Those of [`export_part`](Self::export_part).
    pub fn export(&self) -> ZeResult<(Export, u64)> {
        let id = *self.exported.get_or_make(next_id);
        let export = self.export_part(id, 0, self.size)?;
        Ok((export, id))
    }

    /// Exports `size` bytes at `offset` under an id, which the caller revokes.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for imported memory, whose file has no room for records, and those of
    /// [`exports::export_part`].
    pub fn export_part(&self, id: u64, offset: usize, size: usize) -> ZeResult<Export> {
        ensure(!self.is_imported, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        let record = Record {
            id,
            offset: offset as u64,
            size: size as u64,
            kind: sys::ZE_MEMORY_TYPE_DEVICE,
        };
        exports::export_part(self.file()?, self.size, &record)
    }

    /// The file that holds it.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_UNKNOWN` when the program has closed its descriptor.
    pub fn file(&self) -> ZeResult<&File> {
        self.file.get().ok_or_else(|| {
            describe("the program has closed the descriptor of physical memory");
            sys::ZE_RESULT_ERROR_UNKNOWN
        })
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }
}

impl Drop for PhysicalMemory {
    fn drop(&mut self) {
        if let Some(id) = self.exported.get() {
            exports::revoke(*id);
        }
        if !self.is_imported {
            accounting::release(self.size, self.share);
        }
    }
}

/// The descriptor that a chain imports. What the runtime does not do, such as the export of physical memory as a descriptor,
/// is an error rather than ignored.
///
/// # Safety
/// As for [`chain`].
unsafe fn imported(next: *const c_void) -> ZeResult<Option<i32>> {
    let mut descriptor = None;
    // SAFETY: the caller vouches for the chain.
    for link in unsafe { chain(next) } {
        let unsupported = sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION;
        if link.stype() == sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC {
            let export = link.input::<sys::ze_external_memory_export_desc_t>();
            ensure(export.is_some_and(|it| it.flags == 0), unsupported)?;
            continue;
        }
        let import = link.input::<sys::ze_external_memory_import_fd_t>();
        let import = import.ok_or(unsupported)?;
        check_external(import.flags)?;
        descriptor = Some(import.fd);
    }
    Ok(descriptor)
}

/// `zePhysicalMemCreate`; the device may be null for memory on the host.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn create(
    context: sys::ze_context_handle_t,
    device: sys::ze_device_handle_t,
    desc: *mut sys::ze_physical_mem_desc_t,
    physical: *mut sys::ze_physical_mem_handle_t,
) -> ZeResult {
    resolve::<Context>(context)?;
    // SAFETY: the caller vouches for the pointers.
    let (desc, physical) = unsafe { (input_structure(desc.cast_const())?, output(physical)?) };
    check_flags(desc.flags, FLAGS)?;
    let is_on_host = desc.flags & extensions::ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST != 0;
    let device = if is_on_host && device.is_null() {
        None
    } else {
        Some(device::find(device)?)
    };
    let share = device.filter(|_| !is_on_host).and_then(Device::share);
    check_size(desc.size)?;
    // SAFETY: the caller vouches for the chain.
    let memory = match unsafe { imported(desc.pNext) }? {
        Some(descriptor) => PhysicalMemory::import(descriptor, desc.size)
            .ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?,
        None => PhysicalMemory::new(desc.size, share)?,
    };
    *physical = register(Arc::new(memory))?;
    Ok(())
}

/// `zePhysicalMemDestroy`; where it is mapped, it stays.
pub fn destroy(
    context: sys::ze_context_handle_t,
    physical: sys::ze_physical_mem_handle_t,
) -> ZeResult {
    resolve::<Context>(context)?;
    retire::<PhysicalMemory>(physical).map(drop)
}

/// `zePhysicalMemGetProperties`.
///
/// # Safety
/// As for [`create`].
pub unsafe fn properties(
    context: sys::ze_context_handle_t,
    physical: sys::ze_physical_mem_handle_t,
    properties: *mut extensions::ze_physical_mem_properties_t,
) -> ZeResult {
    resolve::<Context>(context)?;
    let physical = resolve::<PhysicalMemory>(physical)?;
    // SAFETY: the caller vouches for the pointer.
    let properties = unsafe { output_structure(properties) }?;
    properties.id = physical.id;
    properties.size = physical.size as u64;
    Ok(())
}
