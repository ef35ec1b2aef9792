//! Physical memory, which is used once it is mapped.

use std::fs::File;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions::{self, ze_ipc_mem_handle_type_ext_desc_t as HandleType};
use zeusm_process::{OwnFile, duplicate};

use super::pages::check_size;
use crate::abi::arguments::{Link, check_flags};
use crate::abi::entry::{In, Out};
use crate::abi::result::{ZeResult, described, ensure};
use crate::context::Context;
use crate::device::{self, check_external, check_handle_type};
use crate::handle::{hand_out, object, retire};
use crate::memory::{
    Export, Mapping, Part, Record, Reserved, Share, ShareError, accounting, count_file, exports,
    next_id, own_memory_file, reopen,
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
    /// The id, which is unique among allocations, too.
    pub id: u64,
    file: Arc<OwnFile>,
    /// Size in bytes.
    pub size: usize,
    /// The handle of its device; 0 for memory of the host.
    pub device: usize,
    /// The bytes that it takes; none of a file of a descriptor that the program passed.
    reserved: Option<Reserved>,
}

impl PhysicalMemory {
    /// # Errors
    /// `ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY` when the machine, or the device's share of it, has not enough; the system's error
    /// for its file, described.
    fn new(size: usize, share: Option<&'static Share>) -> ZeResult<Self> {
        let reserved = accounting::reserve(size, share);
        let reserved = reserved.ok_or(sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)?;
        let file = own_memory_file(exports::file_length(size)).map_err(ShareError::report)?;
        let file = Arc::new(file);
        count_file(&file);
        Ok(Self {
            id: next_id(),
            file,
            size,
            device: 0,
            reserved: Some(reserved),
        })
    }

    /// The first `size` bytes of the file that `descriptor` names, which the program may close afterwards; `None` for a
    /// descriptor of nothing that can be mapped, or of a file that is too short.
    fn import(descriptor: i32, size: usize) -> Option<Self> {
        let file = duplicate(descriptor)?;
        Mapping::of_external(&file, size, 0)?;
        Some(Self {
            id: next_id(),
            file: Arc::new(OwnFile::new(file).ok()?),
            size,
            device: 0,
            reserved: None,
        })
    }

    /// Exports all of it. The export lives as long as the memory.
    ///
    /// # Errors
    /// Those of [`export_part`](Self::export_part).
    pub fn export(&self) -> ZeResult<Export> {
        self.describe()?;
        Export::of(&self.file, 0, self.id).ok_or_else(closed)
    }

    /// Exports `length` bytes at `offset`; returns the export, and its descriptor, which the caller keeps as long as it lives.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for imported memory, whose file has no room for a record; the result code for the
    /// system's error, which is described.
    pub fn export_part(&self, offset: usize, length: usize) -> ZeResult<(Export, OwnFile)> {
        let part = Part::new(offset, length).ok_or(sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE)?;
        let file = reopen(self.describe()?, part.position()).map_err(ShareError::report)?;
        let file = OwnFile::new(file).map_err(|error| ShareError::of("fstat")(error).report())?;
        let export = Export::of(&file, part.position(), self.id).ok_or_else(closed)?;
        Ok((export, file))
    }

    /// Writes the record of all of it; returns the file.
    fn describe(&self) -> ZeResult<&File> {
        ensure(
            self.reserved.is_some(),
            sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
        )?;
        let record = Record {
            id: self.id,
            offset: 0,
            size: self.size as u64,
            kind: sys::ZE_MEMORY_TYPE_DEVICE,
        };
        let file = self.file()?;
        exports::write_record(file, self.size, &record).map_err(ShareError::report)?;
        Ok(file)
    }

    /// The file that holds it.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_UNKNOWN` when the program has closed its descriptor.
    pub fn file(&self) -> ZeResult<&File> {
        self.file.get().ok_or_else(closed)
    }
}

/// The result code for a file whose descriptor the program has closed, which is described.
fn closed() -> sys::ze_result_t {
    let text = "the program has closed the descriptor of physical memory";
    described(sys::ZE_RESULT_ERROR_UNKNOWN, text)
}

/// The descriptor that a chain imports. What the runtime does not do, such as the export of physical memory as a descriptor,
/// is an error rather than ignored.
fn imported<'a>(chain: impl Iterator<Item = Link<'a>>) -> ZeResult<Option<i32>> {
    let mut descriptor = None;
    for link in chain {
        let unsupported = sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION;
        if let Some(export) = link.input::<sys::ze_external_memory_export_desc_t>() {
            ensure(export.flags == 0, unsupported)?;
        } else if let Some(wanted) = link.input::<HandleType>() {
            check_handle_type(wanted)?;
        } else {
            let import = link.input::<sys::ze_external_memory_import_fd_t>();
            let import = import.ok_or(unsupported)?;
            check_external(import.flags)?;
            descriptor = Some(import.fd);
        }
    }
    Ok(descriptor)
}

/// `zePhysicalMemCreate`; the device may be null for memory on the host.
pub fn create(
    _: Arc<Context>,
    device: sys::ze_device_handle_t,
    desc: In<'_, sys::ze_physical_mem_desc_t>,
    physical: &mut sys::ze_physical_mem_handle_t,
) -> ZeResult {
    check_flags(desc.flags, FLAGS)?;
    let is_on_host = desc.flags & extensions::ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST != 0;
    let device = if is_on_host && device.is_null() {
        None
    } else {
        Some(device::find(device)?)
    };
    let share = device
        .filter(|_| !is_on_host)
        .and_then(|device| device.share);
    check_size(desc.size)?;
    let mut memory = match imported(desc.chain())? {
        Some(descriptor) => PhysicalMemory::import(descriptor, desc.size)
            .ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?,
        None => PhysicalMemory::new(desc.size, share)?,
    };
    if let Some(device) = device.filter(|_| !is_on_host) {
        memory.device = device.handle() as usize;
    }
    hand_out(memory, physical)
}

/// `zePhysicalMemDestroy`; where it is mapped, it stays.
pub fn destroy(_: Arc<Context>, physical: sys::ze_physical_mem_handle_t) -> ZeResult {
    retire::<PhysicalMemory>(physical).map(drop)
}

/// `zePhysicalMemGetProperties`.
pub fn properties(
    _: Arc<Context>,
    physical: Arc<PhysicalMemory>,
    mut properties: Out<'_, extensions::ze_physical_mem_properties_t>,
) -> ZeResult {
    properties.id = physical.id;
    properties.size = physical.size as u64;
    Ok(())
}
