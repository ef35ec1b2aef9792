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
use super::identity::{self, format_uuid};
use super::imported_file::{self, DroppedMapping, FileKey};
use super::mapped_range::MappedRange;
use super::{Error, descriptor, driver, exports};
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
    /// Its addresses; `None` until the size is known.
    range: Option<MappedRange>,
}

/// The current mappings of one allocation, in any context. The lock is held while the owner is queried and the driver maps
/// the memory, so that two threads do not map it twice in one context.
type Mappings = Arc<Mutex<Vec<Weak<Owned<DriverMapping>>>>>;

/// All mappings of this process.
static MAPPED: Local<Mutex<HashMap<AllocationKey, Mappings>>> = Local::new();

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
        let boot = identity::boot_id()?;
        if self.boot != boot {
            return Err(Error::AnotherMachine {
                theirs: format_uuid(self.boot),
                ours: format_uuid(boot),
            });
        }
        if self.device != device.uuid() {
            return Err(Error::AnotherDevice {
                theirs: format_uuid(self.device),
                ours: format_uuid(device.uuid()),
                name: device.to_string(),
            });
        }
        let mappings = mappings_of(self.allocation_key());
        let mut mappings = mappings.lock();
        let is_same =
            |it: &Arc<Owned<DriverMapping>>| it.context == *context && it.device == *device;
        // Before the lock of the files, which the drop of a mapping takes: another thread may drop its last reference now.
        let known = mappings.iter().filter_map(Weak::upgrade).find(is_same);
        // The owner is also queried when a mapping exists, as it may have freed the memory, and the handle may be forged.
        let received = descriptor::receive(self)?;
        if exports::is_own(self) && !imported_file::is_recognised(device.driver())? {
            return Err(Error::OwnMemory {
                device: device.to_string(),
            });
        }
        let mapped = match known {
            Some(mapped) => {
                drop(received);
                mapped
            }
            None => {
                let mapped = DriverMapping::new(self, context, device, received)?;
                let mapped = Arc::new(Owned::new(mapped));
                mappings.retain(|it| it.strong_count() > 0);
                mappings.push(Arc::downgrade(&mapped));
                mapped
            }
        };
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
            exported_kind: self.kind,
            mapped,
        })
    }
}

/// The mappings of an allocation. Allocations without a mapping are removed when another one is added.
fn mappings_of(key: AllocationKey) -> Mappings {
    let mut mapped = MAPPED.get_or_default().lock();
    if let Some(mappings) = mapped.get(&key) {
        return Arc::clone(mappings);
    }
    // An entry with one reference is used by no other thread, so its lock is free.
    mapped.retain(|_, mappings| {
        Arc::strong_count(mappings) > 1 || mappings.lock().iter().any(|it| it.strong_count() > 0)
    });
    Arc::clone(mapped.entry(key).or_default())
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
    fn new(
        handle: &IpcHandle,
        context: &Context,
        device: &Device,
        received: Received,
    ) -> Result<Self, Error> {
        let memory = handle.allocation_key();
        let Received {
            descriptor,
            mut files,
        } = received;
        let file = descriptor.as_ref().and_then(FileId::of);
        let file = imported_file::key(file, device)?;
        let pointer = files.map(file, &memory, context, || {
            Self::open(handle, context, device, descriptor)
        })?;
        // The drop of the mapping takes the lock.
        drop(files);
        let mut mapped = Self {
            memory,
            context: context.clone(),
            device: device.clone(),
            pointer,
            size: 0,
            kind: handle.kind,
            file,
            range: None,
        };
        // An error drops the mapping, which closes it.
        let found = context.driver_attributes(pointer)?;
        // The driver may have mapped it into a larger allocation of its own.
        let before = pointer.saturating_sub(found.base);
        (mapped.size, mapped.kind) = (found.size.saturating_sub(before), found.kind);
        mapped.range = Some(MappedRange::new(pointer..pointer + mapped.size));
        Ok(mapped)
    }

    /// The address at which the driver maps the whole allocation.
    fn open(
        handle: &IpcHandle,
        context: &Context,
        device: &Device,
        received: Option<OwnedFd>,
    ) -> Result<usize, Error> {
        // SAFETY: `descriptor::receive` has verified that the handle's process made it with this content, provided this
        // descriptor and is trusted. Its driver is of the same kind, as it has the same device on the same machine.
        let opened = unsafe {
            let is_own = exports::is_own(handle);
            let of_driver = &handle.driver_handle;
            of_driver.open(context, device, received, is_own)
        };
        opened.map_err(|error| match error {
            // The CPU runtime's result for memory that its owner has freed.
            Error::LevelZero(cause)
                if cause.result() == Some(sys::extensions::ZE_RESULT_ERROR_ADDRESS_NOT_FOUND) =>
            {
                Error::Freed {
                    process: handle.process,
                }
            }
            Error::LevelZero(cause) => driver::explain(device, 0, cause),
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
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Runtime;
    use crate::usm::Allocation;

    #[test]
    fn allocations_in_a_pool_of_the_driver_are_told_apart() {
        let device = Runtime::get().unwrap().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let memory = Allocation::direct(&context, &device, UsmKind::Host, 4096, 0).unwrap();
        let handle = IpcHandle::new(&memory, 0..4096).unwrap();
        let changed = |index: usize| {
            let mut other = handle.clone();
            other.driver_handle.0[index] ^= 1;
            other.allocation_key()
        };
        assert_eq!(changed(0), handle.allocation_key());
        assert_ne!(changed(8), handle.allocation_key());
    }

    #[test]
    fn only_allocations_in_use_stay_known() {
        let device = Runtime::get().unwrap().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let memory = Allocation::direct(&context, &device, UsmKind::Shared, 4096, 0).unwrap();
        let handle = IpcHandle::new(&memory, 0..4096).unwrap();
        let mapping = handle.open(&context, &device).unwrap();
        let is_known = |key| MAPPED.get_or_default().lock().contains_key(&key);
        let open = handle.allocation_key();
        let [unused, opening, next] = [1, 2, 3].map(|id| ([0xa5; 16], id, [0; 60]));
        drop(mappings_of(unused));
        // A thread that opens a handle holds this lock, which must not be waited for.
        let mappings = mappings_of(opening);
        let guard = mappings.lock();
        drop(mappings_of(next));
        assert!(!is_known(unused));
        assert!(is_known(opening) && is_known(open));
        drop((guard, mapping));
        drop(mappings_of(unused));
        assert!(!is_known(open));
    }
}
