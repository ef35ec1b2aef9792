//! The exports of this process. Each is of an allocation of zeusm's, of which several may be in one allocation of the driver's.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::OwnedFd;

use rustix::rand::GetRandomFlags;
use zeusm_process::{FileId, Local, Mutex};

use super::driver::{self, DriverHandle, Subject};
use super::handle::{IpcHandle, Key};
use super::imported_file::ImportedFiles;
use super::{Error, imported_file};
use crate::context::Context;
use crate::device::Device;
use crate::usm::PointerAttributes;

struct Exports {
    /// The key of the handles' authentication tags.
    key: Key,
    /// The first addresses of the driver's allocations, by the random ids of the exports.
    live: HashMap<u64, usize>,
    /// By first address.
    exported: HashMap<usize, Exported>,
    /// By the random ids of the exports, until the event is complete.
    events: HashMap<u64, EventExport>,
}

/// An exported event that is not complete.
enum EventExport {
    Live {
        driver_handle: DriverHandle,
        /// The descriptor's file, if the driver uses one.
        file: Option<FileId>,
    },
    /// Its operation has failed.
    Failed,
}

/// An allocation of the driver's that is exported as a whole: a pool's slab, of which blocks are exported, is one.
pub struct Exported {
    context: Context,
    /// The handle begins with a descriptor of the driver's, the only one that this process keeps.
    pub driver_handle: DriverHandle,
    /// The descriptor's file, if the driver uses one.
    file: Option<FileId>,
    /// The driver's allocation.
    pub memory: PointerAttributes,
    /// The number of exports.
    count: usize,
}

/// The status of the export that a handle names.
pub enum Status {
    /// This process did not make the handle, or not with this content.
    Forged,
    /// The memory has been freed, or the program has closed its descriptor.
    Freed,
    /// The export is live; a duplicate of the descriptor, if the driver uses one.
    Live(Option<OwnedFd>),
    /// The event is complete.
    Complete,
    /// The event's operation has failed.
    Failed,
}

/// Empty in a fork's child, which has exports of its own.
static EXPORTS: Local<Mutex<Exports>> = Local::new();

/// Whether this process made the handle.
pub fn is_own(handle: &IpcHandle) -> bool {
    let exports = EXPORTS.get();
    exports.is_some_and(|it| handle.is_authenticated_by(&it.lock().key))
}

/// Exports the driver's allocation that contains `address`; returns the export's id.
///
/// # Errors
/// Those of the driver, explained, and [`Error::System`] when the system has no random numbers.
pub fn insert(context: &Context, device: &Device, address: usize) -> Result<u64, Error> {
    // A pool's block is a part of the driver's allocation, which can only be exported from its base.
    let memory = context.driver_attributes(address)?;
    // The driver may open or close its descriptors of exported memory when a handle of this process is opened.
    let _files = imported_file::lock();
    let exports = &mut *own_exports()?.lock();
    let id = u64::from_ne_bytes(random()?);
    let base = memory.base;
    let exported = match exports.exported.entry(base) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(place) => {
            let driver_handle = DriverHandle::get(context, base).map_err(|cause| {
                driver::explain(device, Subject::Memory(memory.kind), memory.size, cause)
            })?;
            place.insert(Exported {
                context: context.clone(),
                driver_handle,
                file: driver_handle.file(),
                memory,
                count: 0,
            })
        }
    };
    exported.count += 1;
    exports.live.insert(id, base);
    Ok(id)
}

/// Removes an export; its descriptor is not passed to other processes after this.
pub fn remove(id: u64) {
    let Some(exports) = EXPORTS.get() else { return };
    let mut exports = exports.lock();
    let base = exports.live.remove(&id);
    let removed = base.and_then(|base| {
        let Entry::Occupied(mut exported) = exports.exported.entry(base) else {
            return None;
        };
        exported.get_mut().count -= 1;
        (exported.get().count == 0).then(|| exported.remove())
    });
    // Outside the lock, as the drop may end a context.
    drop(exports);
    drop(removed);
}

/// A handle that `make` makes of an export of this process, authenticated; `None` when the program has closed its descriptor.
///
/// # Errors
/// [`Error::System`] when no descriptor is free.
pub fn handle(
    id: u64,
    make: impl FnOnce(&Exported) -> IpcHandle,
) -> Result<Option<IpcHandle>, Error> {
    let files = imported_file::lock();
    let exports = &mut *own_exports()?.lock();
    let key = exports.key;
    let Some(exported) = exports.of(id) else {
        return Ok(None);
    };
    let is_open = exported.descriptor(&files)?.is_some();
    Ok(is_open.then(|| make(exported).authenticated(&key)))
}

/// Exports the event pool with this handle, whose descriptor has the file; returns the export's id.
///
/// # Errors
/// [`Error::System`] when the system has no random numbers.
pub fn insert_event(driver_handle: DriverHandle, file: Option<FileId>) -> Result<u64, Error> {
    let id = u64::from_ne_bytes(random()?);
    let export = EventExport::Live {
        driver_handle,
        file,
    };
    own_exports()?.lock().events.insert(id, export);
    Ok(id)
}

/// Ends the export of an event, which is signalled.
pub fn end_event(id: u64, has_failed: bool) {
    let Some(exports) = EXPORTS.get() else { return };
    let mut exports = exports.lock();
    if has_failed {
        exports.events.insert(id, EventExport::Failed);
    } else {
        exports.events.remove(&id);
    }
}

/// The handle of an event, authenticated.
///
/// # Errors
/// [`Error::System`] when the system has no random numbers.
pub fn event_handle(handle: IpcHandle) -> Result<IpcHandle, Error> {
    Ok(handle.authenticated(&own_exports()?.lock().key))
}

/// The status of the export that a handle names. The memory is not freed meanwhile: its owner removes the export before.
///
/// # Errors
/// [`Error::System`] when no descriptor is free.
pub fn find(handle: &IpcHandle, files: &ImportedFiles) -> Result<Status, Error> {
    let mut own = own_exports()?.lock();
    if !handle.is_authenticated_by(&own.key) {
        return Ok(Status::Forged);
    }
    if handle.subject == Subject::Event {
        return match own.events.get(&handle.export) {
            Some(EventExport::Live { file: None, .. }) => Ok(Status::Live(None)),
            Some(EventExport::Live {
                driver_handle,
                file: Some(file),
            }) => {
                let descriptor = duplicate(driver_handle, *file)?;
                Ok(descriptor.map_or(Status::Freed, |it| Status::Live(Some(it))))
            }
            Some(EventExport::Failed) => Ok(Status::Failed),
            // Nobody else can have made the handle, and exports end when the event is complete.
            None => Ok(Status::Complete),
        };
    }
    let descriptor = match own.of(handle.export) {
        Some(exported) => exported.descriptor(files)?,
        None => None,
    };
    Ok(descriptor.map_or(Status::Freed, Status::Live))
}

/// The exports of this process, with a key of its own.
fn own_exports() -> Result<&'static Mutex<Exports>, Error> {
    EXPORTS.get_or_try_init(|| Exports::new().map(Mutex::new))
}

impl Exports {
    fn new() -> Result<Self, Error> {
        Ok(Self {
            key: Key(random()?),
            live: HashMap::new(),
            exported: HashMap::new(),
            events: HashMap::new(),
        })
    }

    /// What an export is a part of.
    fn of(&mut self, id: u64) -> Option<&mut Exported> {
        self.exported.get_mut(self.live.get(&id)?)
    }
}

impl Exported {
    /// A duplicate of its descriptor, if the driver uses one; `None` when the program has closed it. The lock stays taken until
    /// the duplicate is closed, for [`DriverDescriptor`](super::driver_descriptor::DriverDescriptor).
    ///
    /// Intel's driver closes its descriptor when another allocation of the same pool of its own is freed, and then has another.
    fn descriptor(&mut self, _: &ImportedFiles) -> Result<Option<Option<OwnedFd>>, Error> {
        let Some(file) = self.file else {
            return Ok(Some(None));
        };
        if self.driver_handle.file() != Some(file) {
            match DriverHandle::get(&self.context, self.memory.base) {
                Ok(another) => self.driver_handle = another,
                Err(_) => return Ok(None),
            }
        }
        Ok(duplicate(&self.driver_handle, file)?.map(Some))
    }
}

/// A duplicate of a handle's descriptor; `None` when the program has closed it.
fn duplicate(handle: &DriverHandle, file: FileId) -> Result<Option<OwnedFd>, Error> {
    let duplicate = handle.duplicate().map_err(|cause| {
        let what = "cannot duplicate the descriptor of the handle";
        Error::System { what, cause }
    })?;
    // The number may be that of another file by now.
    Ok(duplicate.filter(|it| FileId::of(it) == Some(file)))
}

/// Random bytes that no other process can guess.
pub fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], Error> {
    let mut bytes = [0; LENGTH];
    // Requests of up to 256 bytes are not interrupted (Linux, getrandom(2)).
    let filled =
        rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty()));
    filled.map_err(|cause| Error::System {
        what: "cannot make a secret (getrandom)",
        cause: cause.into(),
    })?;
    Ok(bytes)
}
