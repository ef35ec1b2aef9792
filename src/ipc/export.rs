//! The export of an allocation, made when the first handle is requested.

use std::ops::Range;
use std::sync::Arc;

use zeusm_process::OwnDescriptor;

use super::authentication::Key;
use super::driver::{self, DriverHandle};
use super::export_table::{self, Entry};
use super::handle::IpcHandle;
use super::{Error, identity, imported_file, server};
use crate::context::Context;
use crate::pool;
use crate::usm::{Allocation, Kind, Memory, UsmKind};

/// The export of an allocation, which other processes may open. The allocation owns it, and drops it before the memory is
/// freed; a fork's child makes its own.
#[derive(Debug)]
pub(super) struct Export {
    context: Context,
    driver_handle: DriverHandle,
    /// Of the driver's file, if the driver uses one.
    descriptor: Option<Arc<OwnDescriptor>>,
    entry: Entry,
    key: Key,
    /// Of the driver's allocation, of which the exported one may be a part.
    base: usize,
    size: usize,
    kind: UsmKind,
    id: u64,
}

impl Export {
    /// Gets the driver's handle, and adds the export to the table.
    fn new(allocation: &Allocation) -> Result<Self, Error> {
        let context = allocation.context().clone();
        // A pool's block is a part of the driver's allocation, which can only be exported from its base.
        let exported = context.driver_attributes(allocation.as_ptr().addr())?;
        // The driver may open or close its descriptors of exported memory when a handle of this process is opened.
        let files = imported_file::lock();
        let driver_handle = DriverHandle::get(&context, exported.base)
            .map_err(|cause| explain(allocation, exported.size, cause))?;
        let put = |_: &Error| driver_handle.put(&context);
        let duplicate = driver_handle.duplicate();
        let owned = duplicate.and_then(|it| it.map(OwnDescriptor::new).transpose());
        let descriptor = owned.map_err(|cause| {
            let what = "cannot duplicate the descriptor of the memory";
            Error::System { what, cause }
        });
        drop(files);
        let descriptor = descriptor.inspect_err(put)?.map(Arc::new);
        let (entry, key) = export_table::insert(descriptor.clone()).inspect_err(put)?;
        // Without the server, a handle can still be opened wherever pidfd_getfd is allowed.
        server::start(entry.token);
        Ok(Self {
            context,
            driver_handle,
            descriptor,
            entry,
            key,
            base: exported.base,
            size: exported.size,
            kind: exported.kind,
            id: exported.id,
        })
    }

    /// The handle of a range of the allocation.
    fn handle(&self, allocation: &Allocation, range: &Range<usize>, boot: [u8; 16]) -> IpcHandle {
        let descriptor = self.descriptor.as_ref();
        let original = self.driver_handle;
        IpcHandle {
            boot,
            device: allocation.device().uuid(),
            process: std::process::id(),
            kind: self.kind,
            entry: self.entry,
            driver_handle: descriptor.map_or(original, |it| original.with_descriptor(it.number())),
            file: descriptor.map(|it| it.file()),
            allocation_id: self.id,
            allocation_size: self.size as u64,
            offset: (allocation.as_ptr().addr() - self.base + range.start) as u64,
            size: range.len() as u64,
            tag: Default::default(),
        }
        .authenticated(&self.key)
    }
}

impl IpcHandle {
    /// Makes a handle of a range of an allocation, in bytes from its beginning. The allocation keeps the memory: the handle
    /// can be opened as long as the allocation lives.
    ///
    /// # Errors
    /// [`Error::Range`] and [`Error::NothingToShare`], [`Error::Migrates`] for shared memory of a device [that migrates
    /// it](crate::Device::migrates_shared_memory), [`Error::Unsupported`] when the driver does not support IPC,
    /// [`Error::Closed`], and errors of Level Zero and of the system.
    pub fn new(allocation: &Allocation, range: Range<usize>) -> Result<Self, Error> {
        if range.start > range.end || range.end > allocation.size() {
            return Err(Error::Range {
                start: range.start,
                end: range.end,
                size: allocation.size(),
            });
        }
        if range.is_empty() {
            let reason = "no bytes, so nothing to share with another process";
            return Err(Error::NothingToShare { reason });
        }
        let device = allocation.device();
        if allocation.kind() == UsmKind::Shared && device.migrates_shared_memory() {
            return Err(Error::Migrates {
                device: device.to_string(),
            });
        }
        let boot = identity::boot_id()?;
        let export = || pool::retry_if(Error::is_short_of_descriptors, || Export::new(allocation));
        let export = allocation.export(export)?;
        let export: Arc<Export> = export.ok_or(Error::NothingToShare {
            reason: "the memory was exported in another way",
        })?;
        if !export_table::is_open(&export.entry) {
            return Err(Error::Closed);
        }
        Ok(export.handle(allocation, &range, boot))
    }

    /// Makes a handle of a range of typed memory, which returns no slices from then on.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_memory<K: Kind>(memory: &mut Memory<K>, range: Range<usize>) -> Result<Self, Error> {
        Self::new(memory.exclusive_allocation(), range)
    }
}

/// The error for the driver's refusal to export the `size` bytes that an allocation is in.
fn explain(allocation: &Allocation, size: usize, cause: crate::error::Error) -> Error {
    match driver::explain(allocation.device(), size, cause) {
        Error::Refused { cause, description } if export_table::has_been_closed() => {
            let reason = "the program has closed the descriptors of memory that was exported before, and this memory may be in \
                          the same slab of a pool: export an allocation of its own (pool=False)";
            let separator = if description.is_empty() { "" } else { "; " };
            Error::Refused {
                cause,
                description: format!("{description}{separator}{reason}"),
            }
        }
        error => error,
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        export_table::remove(&self.entry);
        self.driver_handle.put(&self.context);
    }
}
