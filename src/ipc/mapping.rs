//! Another process's memory, mapped into this one.

use std::collections::HashMap;
use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::{Arc, Weak};

use level_zero_sys as sys;
use zeusm_process::{FileId, Local, Mutex, Owned};

use super::descriptor::Received;
use super::handle::{AllocationKey, IpcHandle};
use super::imported_file::{self, DroppedMapping, FileKey};
use super::mapped_range::MappedRange;
use super::{Error, descriptor, exports, identity};
use crate::context::Context;
use crate::device::Device;
use crate::pool;
use crate::usm::UsmKind;

/// A range of another process's memory. Cheap to clone; it is unmapped when the last clone is dropped.
///
/// It has no slices, even if the host can access it, as the other process may write at any time. Reads and writes go through
/// the pointer or a queue, and the processes have to synchronise with each other.
#[derive(Clone, Debug)]
pub struct Mapping {
    mapped: Arc<Owned<DriverMapping>>,
    pointer: usize,
    size: usize,
    exported_kind: UsmKind,
}

/// The driver's mapping of a whole allocation.
#[derive(Debug)]
struct DriverMapping {
    memory: AllocationKey,
    context: Context,
    device: Device,
    pointer: usize,
    size: usize,
    kind: UsmKind,
    file: Option<FileKey>,
    /// Its addresses; `None` in the drop.
    range: Option<MappedRange>,
}

/// All mappings of this process, by allocation, context and device.
static MAPPED: Local<Mutex<Mappings>> = Local::new();
type Mappings = HashMap<(AllocationKey, usize, usize), Weak<Owned<DriverMapping>>>;

impl IpcHandle {
    /// Opens the memory on `device` in `context`. If a mapping of it exists in the context, that mapping is returned.
    ///
    /// # Errors
    /// [`Error::AnotherMachine`], [`Error::AnotherDevice`], [`Error::ExporterGone`], [`Error::Untrusted`],
    /// [`Error::Forged`], [`Error::Freed`], [`Error::Unreachable`], [`Error::Interrupted`], [`Error::OwnMemory`], and
    /// [`Error::Refused`] with the driver's result; [`Error::LevelZero`] for a device of another driver than the context's.
    pub fn open(&self, context: &Context, device: &Device) -> Result<Mapping, Error> {
        pool::retry_if(Error::is_short_of_descriptors, || {
            self.open_at_once(context, device)
        })
    }

    fn open_at_once(&self, context: &Context, device: &Device) -> Result<Mapping, Error> {
        context.check_driver_of(device)?;
        identity::check(self.boot, self.device, device)?;
        // The owner is also queried when a mapping exists, as it may have freed the memory, and the handle may be forged.
        let received = descriptor::receive(self)?;
        if exports::is_own(self) && !imported_file::is_recognised(device.driver())? {
            return Err(Error::OwnMemory(device.to_string()));
        }
        let mapped = DriverMapping::of(self, context, device, received)?;
        // The range is checked against the driver's size of the mapping, not the handle's.
        if self.offset + self.size > mapped.size as u64 {
            let reason = "the memory that they open is smaller than they say";
            return Err(Error::Malformed {
                length: Self::LENGTH,
                reason,
            });
        }
        Ok(Mapping {
            pointer: mapped.pointer + self.offset(),
            size: self.size(),
            exported_kind: self.kind(),
            mapped,
        })
    }
}

impl Mapping {
    /// The address of the range in this process.
    #[must_use]
    pub fn as_ptr(&self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.pointer)
    }

    /// Length of the range in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The kind of memory in this process, as the driver reports it: Intel's driver opens shared memory as device memory.
    #[must_use]
    pub fn kind(&self) -> UsmKind {
        self.mapped.kind
    }

    /// The kind of memory in the exporting process.
    #[must_use]
    pub fn exported_kind(&self) -> UsmKind {
        self.exported_kind
    }

    /// The context that it was opened in.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.mapped.context
    }

    /// The device that it was opened on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.mapped.device
    }
}

impl DriverMapping {
    /// The mapping of a handle's memory in the context, which there may be already. The lock of the files is taken until it is
    /// known, so that two threads do not map it twice.
    fn of(
        handle: &IpcHandle,
        context: &Context,
        device: &Device,
        mut received: Received,
    ) -> Result<Arc<Owned<Self>>, Error> {
        let memory = handle.allocation_key();
        let key = (memory, context.handle().addr(), device.handle().addr());
        let mut mapped = MAPPED.get_or_default().lock();
        if let Some(known) = mapped.get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let descriptor = received.descriptor.take();
        let file = descriptor.as_ref().and_then(FileId::of);
        let file = imported_file::key(file, device)?;
        let files = &mut received.files;
        let pointer = files.map(file, &memory, context, || {
            Self::open(handle, context, device, descriptor)
        })?;
        let found = context.driver_attributes(pointer).inspect_err(|_| {
            // SAFETY: it was mapped above, and no one uses it.
            let unused = unsafe { DroppedMapping::new(memory, context.clone(), pointer) };
            files.unmap(file, unused);
        })?;
        // The driver may have mapped it into a larger allocation of its own.
        let before = pointer.saturating_sub(found.base);
        let size = found.size.saturating_sub(before);
        let new = Arc::new(Owned::new(Self {
            memory,
            context: context.clone(),
            device: device.clone(),
            pointer,
            size,
            kind: found.kind,
            file,
            range: Some(MappedRange::new(pointer..pointer + size)),
        }));
        mapped.retain(|_, it| it.strong_count() > 0);
        mapped.insert(key, Arc::downgrade(&new));
        Ok(new)
    }

    /// The address at which the driver maps the whole allocation.
    fn open(
        handle: &IpcHandle,
        context: &Context,
        device: &Device,
        received: Option<OwnedFd>,
    ) -> Result<usize, Error> {
        let is_own = exports::is_own(handle);
        let subject = (device, handle.subject);
        let opened = handle.driver_handle.open(received, is_own, subject, |it| {
            // SAFETY: `descriptor::receive` has verified that the handle's process made it with this content, provided this
            // descriptor and is trusted. Its driver is of the same kind, as it has the same device on the same machine.
            unsafe { it.map(context, device) }
        });
        opened.map_err(|error| match error {
            // The CPU runtime's result for memory that its owner has freed.
            Error::Refused { cause, .. }
                if cause.result() == Some(sys::extensions::ZE_RESULT_ERROR_ADDRESS_NOT_FOUND) =>
            {
                Error::Freed(handle.process)
            }
            error => error,
        })
    }
}

impl Drop for DriverMapping {
    fn drop(&mut self) {
        // First, as another thread's memory may get the addresses.
        self.range = None;
        // SAFETY: `open` mapped it, and this is its last owner, whose pointers are not used after it.
        let mapping =
            unsafe { DroppedMapping::new(self.memory, self.context.clone(), self.pointer) };
        imported_file::lock().unmap(self.file, mapping);
    }
}

#[cfg(test)]
mod tests;
