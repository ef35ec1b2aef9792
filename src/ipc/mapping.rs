//! Another process's memory, mapped here.

use std::collections::HashMap;
use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::{Arc, Weak};

use level_zero_sys as sys;

use super::handle::IpcHandle;
use super::identity::{self, uuid};
use super::{Error, driver, fetch};
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
    exported: UsmKind,
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

/// The process's token, and the driver's number of the allocation there.
type Key = ([u8; 16], u64);

/// What of one allocation is mapped at the moment, in any context. Locked while its owner is asked and the driver maps,
/// so that two threads neither map it twice in one context nor have a descriptor of it in a driver's hands at once.
type Slot = Arc<Mutex<Vec<Weak<Own<Whole>>>>>;

/// All that this process has mapped.
static OPEN: Local<Mutex<HashMap<Key, Slot>>> = Local::new();

/// The CPU runtime's answer for memory that its owner has freed ("address not found", specification 1.9).
const NOT_FOUND: sys::ze_result_t = sys::ze_result_t(0x7800_0021);

impl IpcHandle {
    /// Opens the memory on `device` in `context`; a second time for as long as the first mapping lives, that one.
    ///
    /// # Errors
    /// [`Error::AnotherMachine`], [`Error::AnotherDevice`], [`Error::ExporterGone`], [`Error::Untrusted`],
    /// [`Error::Forged`], [`Error::Freed`], [`Error::Unreachable`], and [`Error::Refused`] with the driver's answer.
    pub fn open(&self, context: &Context, device: &Device) -> Result<Mapping, Error> {
        let here = identity::boot()?;
        if self.boot != here {
            return Err(Error::AnotherMachine {
                theirs: uuid(self.boot),
                ours: uuid(here),
            });
        }
        if self.device != device.uuid() {
            return Err(Error::AnotherDevice {
                theirs: uuid(self.device),
                ours: uuid(device.uuid()),
                name: device.name().to_owned(),
            });
        }
        let slot = slot((self.entry.token, self.id));
        let mut open = slot.lock();
        // Asked each time, as the owner may have freed the memory, and as the handle may be made up.
        let descriptor = fetch::descriptor(self)?;
        let is_here = |it: &Arc<Own<Whole>>| it.context == *context && it.device == *device;
        let whole = match open.iter().filter_map(Weak::upgrade).find(is_here) {
            Some(whole) => whole,
            None => {
                let whole = Arc::new(Own::new(Whole::new(self, context, device, descriptor)?));
                open.retain(|it| it.strong_count() > 0);
                open.push(Arc::downgrade(&whole));
                whole
            }
        };
        // The driver has the last word on what it has mapped, also where a handle says more.
        if self.offset + self.size > whole.size as u64 {
            let reason = "the memory that they open is smaller than they say";
            return Err(Error::Malformed {
                length: Self::LENGTH,
                reason,
            });
        }
        Ok(Mapping {
            pointer: whole.pointer + self.offset(),
            size: self.size(),
            exported: self.kind,
            whole,
        })
    }
}

/// That of an allocation; those without a mapping go when another is added.
fn slot(key: Key) -> Slot {
    let mut open = OPEN.get_or_default().lock();
    if let Some(slot) = open.get(&key) {
        return Arc::clone(slot);
    }
    // No other thread has what is here alone, so that its lock is free.
    open.retain(|_, slot| {
        Arc::strong_count(slot) > 1 || slot.lock().iter().any(|it| it.strong_count() > 0)
    });
    Arc::clone(open.entry(key).or_default())
}

impl Mapping {
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

    /// The kind of memory that it is here, by the driver's word: what its owner has as shared memory, Intel's driver
    /// opens as device memory.
    #[must_use]
    pub fn kind(&self) -> UsmKind {
        self.whole.kind
    }

    /// The kind of memory that its owner has.
    #[must_use]
    pub fn exported_kind(&self) -> UsmKind {
        self.exported
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
        // SAFETY: the handle's process made it as it is, has just given the descriptor, and is trusted: `fetch` saw to all
        // three. Its driver is of the same kind, as it has the same device on the same machine.
        let opened = unsafe { handle.raw.open(context, device, descriptor) };
        let pointer = opened.map_err(|error| match error {
            Error::LevelZero(cause) if cause.result() == Some(NOT_FOUND) => Error::Freed {
                process: handle.process,
            },
            Error::LevelZero(cause) => driver::explain(device, 0, cause),
            error => error,
        })?;
        let mut whole = Self {
            context: context.clone(),
            device: device.clone(),
            pointer,
            size: 0,
            kind: handle.kind,
        };
        // On an error the mapping is closed as it is dropped.
        let found = context.driver_attributes(pointer)?;
        // The driver may have put it into a larger one of its own.
        let before = pointer.saturating_sub(found.base);
        (whole.size, whole.kind) = (found.size.saturating_sub(before), found.kind);
        Ok(whole)
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        driver::close(&self.context, self.pointer);
    }
}
