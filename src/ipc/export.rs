//! The export of an allocation, made when the first handle is requested.

use std::ops::Range;
use std::sync::Arc;

use level_zero_sys as sys;

use super::driver::Subject;
use super::exports::Exported;
use super::handle::IpcHandle;
use super::socket::Token;
use super::{Error, exports, identity, server};
use crate::context::Context;
use crate::device::Device;
use crate::pool;
use crate::usm::{Allocation, Kind, Memory, UsmKind};

/// The export of an allocation, which other processes may open until it is dropped, before the memory is freed. A fork's child
/// makes its own.
#[derive(Debug)]
pub struct Export(u64);

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
        if allocation.is_in_place() {
            return Err(Error::NothingToShare(
                "the memory is the program's, used in place: only memory that Level Zero allocates can be shared; copy it",
            ));
        }
        if allocation.is_suspendable() {
            return Err(Error::NothingToShare(
                "the memory is of a pool that can be suspended, and other processes would keep what it gives back: share memory of \
                 another pool",
            ));
        }
        let (context, device) = (allocation.context(), allocation.device());
        let token = start(device, allocation.kind())?;
        let first = allocation.as_ptr().addr();
        let make = || exports::insert(context, device, first).map(Export);
        let export = allocation.export(|| pool::retry_if(Error::is_short_of_descriptors, make))?;
        let export: Arc<Export> = export.ok_or(Error::NothingToShare(
            "the memory was exported in another way",
        ))?;
        export.handle(token, device, first + range.start..first + range.end)
    }

    /// Makes a handle of a range of addresses in memory that another package has allocated in the context. The handle can be
    /// opened until the export is dropped, which has to be before the memory is freed.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`crate::Error::UnknownPointer`] for other addresses.
    pub fn of_foreign(
        context: &Context,
        device: &Device,
        range: Range<usize>,
    ) -> Result<(Self, Export), Error> {
        let memory = context.driver_attributes(range.start)?;
        if range.is_empty() || range.end - memory.base > memory.size {
            return Err(Error::Range {
                start: range.start - memory.base,
                end: range.end.saturating_sub(memory.base),
                size: memory.size,
            });
        }
        let token = start(device, memory.kind)?;
        let make = || exports::insert(context, device, range.start).map(Export);
        let export = pool::retry_if(Error::is_short_of_descriptors, make).map_err(|error| {
            let refused = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
            match &error {
                Error::Refused { cause, .. } if cause.result() == Some(refused) => Error::NothingToShare(
                    "the driver does not export this memory: if it is another process's, pass that process's handle on",
                ),
                _ => error,
            }
        })?;
        Ok((export.handle(token, device, range)?, export))
    }

    /// Makes a handle of a range of typed memory, which returns no slices from then on.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_memory<K: Kind>(memory: &mut Memory<K>, range: Range<usize>) -> Result<Self, Error> {
        Self::new(memory.exclusive_allocation(), range)
    }
}

impl Export {
    /// The handle of a range of addresses in the allocation.
    fn handle(
        &self,
        token: Token,
        device: &Device,
        range: Range<usize>,
    ) -> Result<IpcHandle, Error> {
        let boot = identity::boot_id()?;
        let make = |exported: &Exported| {
            let memory = &exported.memory;
            IpcHandle {
                boot,
                device: device.uuid(),
                process: std::process::id(),
                subject: Subject::Memory(memory.kind),
                token,
                export: self.0,
                driver_handle: exported.driver_handle,
                allocation_id: memory.id,
                allocation_size: memory.size as u64,
                offset: (range.start - memory.base) as u64,
                size: range.len() as u64,
                tag: Default::default(),
            }
        };
        let handle = pool::retry_if(Error::is_short_of_descriptors, || {
            exports::handle(self.0, make)
        });
        handle?.ok_or(Error::Closed)
    }
}

/// Starts the server for memory that can be shared.
fn start(device: &Device, kind: UsmKind) -> Result<Token, Error> {
    if kind == UsmKind::Shared && device.migrates_shared_memory() {
        return Err(Error::Migrates(device.to_string()));
    }
    pool::retry_if(Error::is_short_of_descriptors, server::start)
}
