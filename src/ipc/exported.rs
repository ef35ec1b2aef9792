//! An allocation of the driver's that is exported, as a whole: a pool's slab, of which blocks are exported, is one.

use std::os::fd::{AsFd, BorrowedFd};

use zeusm_process::OwnDescriptor;

use super::driver::{self, DriverHandle};
use super::{Error, imported_file};
use crate::context::Context;
use crate::usm::{Allocation, PointerAttributes};

/// The driver's handle of an allocation, with zeusm's one descriptor of it. The drop releases both.
#[derive(Debug)]
pub struct Exported {
    context: Context,
    driver_handle: DriverHandle,
    /// Of the driver's file, if the driver uses one.
    descriptor: Option<OwnDescriptor>,
    /// Of the driver's allocation.
    pub memory: PointerAttributes,
}

impl Exported {
    /// Gets the driver's handle of the allocation that is, or contains, `part`.
    pub fn new(part: &Allocation, memory: PointerAttributes) -> Result<Self, Error> {
        let context = part.context().clone();
        // The driver may open or close its descriptors of exported memory when a handle of this process is opened.
        let _files = imported_file::lock();
        let driver_handle = DriverHandle::get(&context, memory.base)
            .map_err(|cause| driver::explain(part.device(), memory.size, cause))?;
        let mut exported = Self {
            context,
            driver_handle,
            descriptor: None,
            memory,
        };
        let duplicate = driver_handle.duplicate();
        let descriptor = duplicate.and_then(|it| it.map(OwnDescriptor::new).transpose());
        exported.descriptor = descriptor.map_err(|cause| {
            let what = "cannot duplicate the descriptor of the memory";
            Error::System { what, cause }
        })?;
        Ok(exported)
    }

    /// The driver's handle, with zeusm's descriptor.
    pub fn driver_handle(&self) -> DriverHandle {
        let own = self.descriptor.as_ref();
        own.map_or(self.driver_handle, |it| {
            self.driver_handle.with_descriptor(it.number())
        })
    }

    /// Its descriptor, if the driver uses one; `None` when the program has closed it.
    pub fn descriptor(&self) -> Option<Option<BorrowedFd<'_>>> {
        match &self.descriptor {
            None => Some(None),
            Some(descriptor) => Some(Some(descriptor.get()?.as_fd())),
        }
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        self.driver_handle.put(&self.context);
    }
}
