//! The export of an allocation, made when the first handle is requested.

use std::ops::Range;
use std::sync::Arc;

use super::exports::Exported;
use super::handle::IpcHandle;
use super::{Error, exports, identity, server};
use crate::pool;
use crate::usm::{Allocation, Kind, Memory, UsmKind};

/// The export of an allocation, which other processes may open. The allocation owns it, and drops it before the memory is
/// freed; a fork's child makes its own.
#[derive(Debug)]
struct Export(u64);

impl Drop for Export {
    fn drop(&mut self) {
        exports::remove(self.0);
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
            return Err(Error::NothingToShare(reason));
        }
        let device = allocation.device();
        if allocation.kind() == UsmKind::Shared && device.migrates_shared_memory() {
            return Err(Error::Migrates(device.to_string()));
        }
        let boot = identity::boot_id()?;
        let short = Error::is_short_of_descriptors;
        let token = pool::retry_if(short, server::start)?;
        let make = || exports::insert(allocation).map(Export);
        let export = allocation.export(|| pool::retry_if(short, make))?;
        let export: Arc<Export> = export.ok_or(Error::NothingToShare(
            "the memory was exported in another way",
        ))?;
        let make = |exported: &Exported| {
            let memory = &exported.memory;
            Self {
                boot,
                device: device.uuid(),
                process: std::process::id(),
                kind: memory.kind,
                token,
                export: export.0,
                driver_handle: exported.driver_handle,
                allocation_id: memory.id,
                allocation_size: memory.size as u64,
                offset: (allocation.as_ptr().addr() - memory.base + range.start) as u64,
                size: range.len() as u64,
                tag: Default::default(),
            }
        };
        let handle = pool::retry_if(short, || exports::handle(export.0, make));
        handle?.ok_or(Error::Closed)
    }

    /// Makes a handle of a range of typed memory, which returns no slices from then on.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_memory<K: Kind>(memory: &mut Memory<K>, range: Range<usize>) -> Result<Self, Error> {
        Self::new(memory.exclusive_allocation(), range)
    }
}
