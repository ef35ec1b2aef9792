//! Another process's memory, mapped here.

use std::collections::HashMap;
use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::{Arc, Weak};

use level_zero_sys as sys;

use super::Error;
use super::driver;
use super::handle::IpcHandle;
use super::ledger::Entry;
use crate::context::Context;
use crate::device::Device;
use crate::process::{Local, Mutex, Own};
use crate::usm::UsmKind;

/// A range of another process's memory. Cheap to clone; the last one that goes unmaps it.
///
/// It is no slice, also where the host may look: the other process may write at any time, so reads and writes go through
/// the pointer or a queue, and the processes agree on the order between themselves.
#[derive(Clone, Debug)]
pub struct Mapping {
    whole: Arc<Own<Whole>>,
    pointer: usize,
    size: usize,
}

/// The driver's mapping, of a whole allocation.
#[derive(Debug)]
struct Whole {
    context: Context,
    device: Device,
    pointer: usize,
    size: usize,
    kind: UsmKind,
}

/// Context, device, and the export.
type Key = (usize, usize, [u8; 16], u64);

/// What this process has mapped at the moment. Held while the driver maps, so that two threads do not map one memory
/// twice.
static OPEN: Local<Mutex<HashMap<Key, Weak<Own<Whole>>>>> = Local::new();

/// The CPU runtime's answer for memory that its owner has freed ("address not found", specification 1.9).
const NOT_FOUND: sys::ze_result_t = sys::ze_result_t(0x7800_0021);

impl Mapping {
    pub(super) fn new(
        handle: &IpcHandle,
        context: &Context,
        device: &Device,
        descriptor: Option<OwnedFd>,
    ) -> Result<Self, Error> {
        let Entry { token, number, .. } = handle.entry;
        let key = (
            context.handle().addr(),
            device.handle().addr(),
            token,
            number,
        );
        let mut open = OPEN.get_or_default().lock();
        let whole = match open.get(&key).and_then(Weak::upgrade) {
            Some(whole) => whole,
            None => {
                let whole = Arc::new(Own::new(Whole::new(handle, context, device, descriptor)?));
                open.retain(|_, whole| whole.strong_count() > 0);
                open.insert(key, Arc::downgrade(&whole));
                whole
            }
        };
        Ok(Self {
            pointer: whole.pointer + handle.offset(),
            size: handle.size(),
            whole,
        })
    }

    /// Where the range begins in this process.
    #[must_use]
    pub fn as_ptr(&self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.pointer)
    }

    /// Length of the range in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The kind of memory.
    #[must_use]
    pub fn kind(&self) -> UsmKind {
        self.whole.kind
    }

    /// The context that it was opened in.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.whole.context
    }

    /// The device that it was opened on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.whole.device
    }
}

impl Whole {
    fn new(
        handle: &IpcHandle,
        context: &Context,
        device: &Device,
        descriptor: Option<OwnedFd>,
    ) -> Result<Self, Error> {
        driver::check(device)?;
        let pointer = handle
            .raw
            .open(context, device, descriptor)
            .map_err(|error| match error.result() {
                Some(NOT_FOUND) => Error::Freed {
                    process: handle.process,
                },
                _ => error.into(),
            })?;
        let mut whole = Self {
            context: context.clone(),
            device: device.clone(),
            pointer,
            size: 0,
            kind: handle.kind,
        };
        // The driver has the last word on what it has mapped; what is too small is closed as it is dropped.
        let found = context.driver_attributes(pointer)?;
        (whole.size, whole.kind) = (found.size, found.kind);
        if (whole.size as u64) < handle.offset + handle.size {
            let reason = "the memory that they open is smaller than they say";
            return Err(Error::Malformed {
                length: IpcHandle::LENGTH,
                reason,
            });
        }
        Ok(whole)
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        driver::close(&self.context, self.pointer);
    }
}
