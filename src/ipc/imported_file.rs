//! The driver's mappings of one file of another process.
//!
//! With several GPUs, Intel's driver (26.27) does not recognise a file that it has mapped already: the map of its shared
//! buffers (`BoHandleDeviceIndexPairComparer`) has no consistent order. It then closes the kernel's handle of the buffer
//! together with the first of several mappings, and the others fail, or use another buffer that got the number. Contexts
//! have mappings of their own, and allocations in one pool of the driver have one file.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::Error;
use super::driver;
use super::handle::{AllocationKey, IpcHandle};
use super::identity::FileId;
use crate::context::Context;
use crate::device::{Device, Driver};
use crate::process::{Local, Mutex};

/// The mappings of a file on a device. All of them are closed when the last one is dropped.
#[derive(Debug, Default)]
pub struct ImportedFile {
    dropped: Mutex<Vec<Dropped>>,
}

/// A mapping that is not used any more, and is used again if its memory is opened again.
#[derive(Debug)]
struct Dropped {
    memory: AllocationKey,
    context: Context,
    pointer: usize,
}

/// By the file, and the device's UUID.
type Files = HashMap<(FileId, [u8; 16]), Weak<ImportedFile>>;

static FILES: Local<Mutex<Files>> = Local::new();

/// Whether the driver recognises a file that it has mapped or exported already: the CPU runtime, and Intel's driver with one
/// card.
///
/// # Errors
/// [`Error::LevelZero`] if the driver does not list its devices.
pub fn is_recognised(driver: &Driver) -> Result<bool, Error> {
    Ok(driver.is_cpu_runtime() || !driver.has_several_cards()?)
}

impl ImportedFile {
    /// That of a handle's memory on a device; one of its own where the driver recognises files.
    ///
    /// # Errors
    /// [`Error::LevelZero`] if the driver does not list its devices.
    pub fn of(handle: &IpcHandle, device: &Device) -> Result<Arc<Self>, Error> {
        let Some(file) = handle.file else {
            return Ok(Arc::default());
        };
        if is_recognised(device.driver())? {
            return Ok(Arc::default());
        }
        let mut files = FILES.get_or_default().lock();
        let key = (file, device.uuid());
        if let Some(known) = files.get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        files.retain(|_, known| known.strong_count() > 0);
        let new = Arc::default();
        files.insert(key, Arc::downgrade(&new));
        Ok(new)
    }

    /// A dropped mapping of this memory in the context.
    pub fn take(&self, memory: &AllocationKey, context: &Context) -> Option<usize> {
        let mut dropped = self.dropped.lock();
        let is_same = |it: &Dropped| it.memory == *memory && it.context == *context;
        let index = dropped.iter().position(is_same)?;
        Some(dropped.swap_remove(index).pointer)
    }

    /// Closes a mapping, together with the other ones of the file.
    pub fn close(&self, memory: AllocationKey, context: &Context, pointer: usize) {
        self.dropped.lock().push(Dropped {
            memory,
            context: context.clone(),
            pointer,
        });
    }
}

impl Drop for ImportedFile {
    fn drop(&mut self) {
        for mapping in self.dropped.get_mut().drain(..) {
            driver::close(&mapping.context, mapping.pointer);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Runtime;

    #[test]
    fn a_dropped_mapping_is_used_again_in_its_context_only() {
        let device = Runtime::get().unwrap().default_device().unwrap();
        let contexts = [(); 2].map(|()| Context::new(device.driver()).unwrap());
        let [memory, other] = [1, 2].map(|id| ([0xa5; 16], id, [0; 60]));
        let file = ImportedFile::default();
        file.close(memory, &contexts[0], 4096);
        assert_eq!(file.take(&memory, &contexts[1]), None);
        assert_eq!(file.take(&other, &contexts[0]), None);
        assert_eq!(file.take(&memory, &contexts[0]), Some(4096));
        assert_eq!(file.take(&memory, &contexts[0]), None);
    }
}
