//! What an allocation keeps once a handle of it was given out.

use std::ops::Range;

use super::driver::{self, Raw};
use super::handle::IpcHandle;
use super::ledger::{self, Entry};
use super::seal::Key;
use super::{Error, identity, server};
use crate::context::Context;
use crate::usm::{Allocation, Kind, Memory, UsmKind};

/// An allocation that other processes may open. It lives in the allocation, and ends before the memory is freed; a fork's
/// child makes its own.
#[derive(Debug)]
pub(super) struct Export {
    context: Context,
    raw: Raw,
    file: Option<identity::File>,
    entry: Entry,
    key: Key,
    /// Of the driver's allocation, of which this may be a part.
    base: usize,
    size: usize,
    kind: UsmKind,
    id: u64,
}

impl Export {
    /// Gets the driver's handle, and enters it in the ledger.
    fn new(allocation: &Allocation) -> Result<Self, Error> {
        let context = allocation.context().clone();
        // A pool's allocation is a part of the driver's, whose handle can be had of its beginning only.
        let whole = context.driver_attributes(allocation.as_ptr().addr())?;
        let raw = Raw::get(&context, whole.base)
            .map_err(|cause| driver::explain(allocation.device(), whole.size, cause))?;
        let file = raw.file();
        let (entry, key) = ledger::enter(file.map(|_| raw.descriptor())).inspect_err(|_| {
            raw.put(&context);
        })?;
        // Without it, handles still open wherever pidfd_getfd is allowed.
        server::serve(entry.token);
        Ok(Self {
            context,
            raw,
            file,
            entry,
            key,
            base: whole.base,
            size: whole.size,
            kind: whole.kind,
            id: whole.id,
        })
    }

    /// The handle of a range of the allocation.
    fn handle(&self, allocation: &Allocation, range: &Range<usize>, boot: [u8; 16]) -> IpcHandle {
        IpcHandle {
            boot,
            device: allocation.device().uuid(),
            process: std::process::id(),
            kind: self.kind,
            entry: self.entry,
            raw: self.raw,
            file: self.file,
            id: self.id,
            whole: self.size as u64,
            offset: (allocation.as_ptr().addr() - self.base + range.start) as u64,
            size: range.len() as u64,
            seal: Default::default(),
        }
        .sealed(&self.key)
    }
}

impl IpcHandle {
    /// Makes a handle of a range of an allocation, in bytes from its beginning. The memory stays the allocation's: the
    /// handle opens for as long as that lives.
    ///
    /// # Errors
    /// [`Error::Range`] and [`Error::NothingToShare`], [`Error::Unsupported`] by the driver's word, and Level Zero's and
    /// the system's own errors.
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
        let boot = identity::boot()?;
        let export = allocation.export(|| Export::new(allocation))?;
        let export: &Export = export.ok_or(Error::NothingToShare {
            reason: "been exported in another way",
        })?;
        Ok(export.handle(allocation, &range, boot))
    }

    /// Makes a handle of a range of a typed owner's memory, which gives no slices from then on.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_memory<K: Kind>(memory: &mut Memory<K>, range: Range<usize>) -> Result<Self, Error> {
        Self::new(memory.exclusive_allocation(), range)
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        ledger::leave(&self.entry);
        self.raw.put(&self.context);
    }
}
