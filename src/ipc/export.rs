//! What an allocation keeps once a handle of it was given out.

use std::ops::Range;

use super::driver::{self, Raw};
use super::handle::IpcHandle;
use super::ledger::{self, Entry};
use super::{Error, identity};
use crate::context::Context;
use crate::usm::{Allocation, UsmKind};

/// An allocation that other processes may open. It lives in the allocation, and ends before the memory is freed; a fork's
/// child makes its own.
#[derive(Debug)]
pub(crate) struct Export {
    context: Context,
    raw: Raw,
    file: Option<identity::File>,
    entry: Entry,
    /// Of the driver's allocation, of which this may be a part.
    base: usize,
    size: usize,
    kind: UsmKind,
    id: u64,
}

impl Export {
    /// Gets the driver's handle, and enters it in the ledger.
    pub(crate) fn new(allocation: &Allocation) -> Result<Self, Error> {
        driver::check(allocation.device())?;
        let context = allocation.context().clone();
        // A pool's allocation is a part of the driver's, whose handle can be had of its beginning only.
        let whole = context.driver_attributes(allocation.as_ptr().addr())?;
        let raw = Raw::get(&context, whole.base)?;
        let file = raw.file();
        let entry = match ledger::enter(file.map(|_| raw.descriptor())) {
            Ok(entry) => entry,
            Err(cause) => {
                raw.put(&context);
                let what = "cannot enter the memory in the list of what this process exports";
                return Err(Error::System { what, cause });
            }
        };
        Ok(Self {
            context,
            raw,
            file,
            entry,
            base: whole.base,
            size: whole.size,
            kind: whole.kind,
            id: whole.id,
        })
    }

    /// The handle of a range of the allocation.
    pub(crate) fn handle(
        &self,
        allocation: &Allocation,
        range: &Range<usize>,
    ) -> Result<IpcHandle, Error> {
        Ok(IpcHandle {
            boot: identity::boot()?,
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
        })
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        ledger::leave(&self.entry);
        self.raw.put(&self.context);
    }
}
