//! The driver's mappings of files of other processes.
//!
//! Two properties of Intel's driver (26.27) are hidden here:
//!
//! - Its table of shared buffers is not safe against a close beside another close or an open, also of other files. One lock
//!   orders all of them.
//! - With several GPUs it does not recognise a file that it has mapped already: the map of its shared buffers
//!   (`BoHandleDeviceIndexPairComparer`) has no consistent order. It then closes the kernel's handle of the buffer together
//!   with the first of several mappings, and the others fail, or use another buffer that got the number. Contexts have
//!   mappings of their own, and allocations in one pool of the driver have one file. The mappings of a file are therefore
//!   closed together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use zeusm_process::{FileId, Local, Mutex, MutexGuard};

use super::Error;
use super::driver;
use super::handle::AllocationKey;
use crate::context::Context;
use crate::device::{Device, Driver};

/// A file, and the UUID of the device that it is mapped on.
pub type FileKey = (FileId, [u8; 16]);

/// The files whose mappings are closed together.
#[derive(Debug, Default)]
pub struct ImportedFiles(HashMap<FileKey, File>);

#[derive(Debug, Default)]
struct File {
    /// The number of mappings in use.
    used: usize,
    dropped: Vec<DroppedMapping>,
}

/// A mapping that is not used any more. It is used again if its memory is opened again before it is closed.
#[derive(Debug)]
pub struct DroppedMapping {
    memory: AllocationKey,
    context: Context,
    pointer: usize,
}

impl DroppedMapping {
    /// The mapping of an allocation in a context, at an address.
    ///
    /// # Safety
    /// The driver must have mapped it so, it must not be closed, and no one may use it, now or later.
    pub unsafe fn new(memory: AllocationKey, context: Context, pointer: usize) -> Self {
        Self {
            memory,
            context,
            pointer,
        }
    }

    fn close(self) {
        // SAFETY: the mapping is not used, as its maker has vouched for, and this value is consumed.
        unsafe { driver::close(&self.context, self.pointer) };
    }
}

static FILES: Local<Mutex<ImportedFiles>> = Local::new();

/// Locks the driver's mappings of this process. Descriptors of other processes' memory are received under the lock, too
/// ([`super::driver_descriptor`]).
pub fn lock() -> MutexGuard<'static, ImportedFiles> {
    FILES.get_or_default().lock()
}

/// Whether the driver recognises a file that it has mapped or exported already: the CPU runtime, and Intel's driver with one
/// card.
///
/// # Errors
/// [`Error::LevelZero`] if the driver does not list its devices.
pub fn is_recognised(driver: &Driver) -> Result<bool, Error> {
    Ok(driver.is_cpu_runtime() || !driver.has_several_cards()?)
}

/// The key of a file on a device; `None` where the driver recognises files.
///
/// # Errors
/// [`Error::LevelZero`] if the driver does not list its devices.
pub fn key(file: Option<FileId>, device: &Device) -> Result<Option<FileKey>, Error> {
    if is_recognised(device.driver())? {
        return Ok(None);
    }
    Ok(file.map(|file| (file, device.uuid())))
}

impl ImportedFiles {
    /// The address of a mapping: a dropped one of this memory in the context, or one that `open` makes.
    pub fn map(
        &mut self,
        key: Option<FileKey>,
        memory: &AllocationKey,
        context: &Context,
        open: impl FnOnce() -> Result<usize, Error>,
    ) -> Result<usize, Error> {
        let Some(key) = key else {
            return open();
        };
        let file = self.0.get_mut(&key);
        let pointer = match file.and_then(|file| file.take(memory, context)) {
            Some(pointer) => pointer,
            None => open()?,
        };
        self.0.entry(key).or_default().used += 1;
        Ok(pointer)
    }

    /// Drops a mapping. It is closed with the last one of its file, and at once without a file.
    pub fn unmap(&mut self, key: Option<FileKey>, mapping: DroppedMapping) {
        let Some(Entry::Occupied(mut file)) = key.map(|key| self.0.entry(key)) else {
            return mapping.close();
        };
        let it = file.get_mut();
        it.dropped.push(mapping);
        it.used -= 1;
        if it.used == 0 {
            file.remove()
                .dropped
                .into_iter()
                .for_each(DroppedMapping::close);
        }
    }
}

impl File {
    fn take(&mut self, memory: &AllocationKey, context: &Context) -> Option<usize> {
        let is_same = |it: &DroppedMapping| it.memory == *memory && it.context == *context;
        let index = self.dropped.iter().position(is_same)?;
        Some(self.dropped.swap_remove(index).pointer)
    }
}

#[cfg(test)]
mod tests;
