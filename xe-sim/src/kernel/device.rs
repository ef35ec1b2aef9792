//! The kernel's state of one GPU: handle tables for buffer objects, address spaces and exec queues. All open files of a
//! process share the state. The kernel has it per open file, but Intel's driver opens each device only once.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::io::{Errno, Result};

use crate::engine::ExecQueue;
use crate::faults::{self, Loss};
use crate::machine::Slot;
use crate::memory::{AddressSpace, Buffer, Vram};

/// A handle table. As in the kernel, a new object has the lowest free handle, from one on: a program that uses a handle after
/// its destruction may find another object. The lock is never held while an object is used or dropped.
pub(super) struct Table<T> {
    things: Mutex<BTreeMap<u32, Arc<T>>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            things: Mutex::new(BTreeMap::new()),
        }
    }
}

impl<T> Table<T> {
    pub(super) fn add(&self, thing: T) -> u32 {
        let things = &mut *self.things.lock();
        let taken = (1..).zip(things.keys());
        let number = 1 + taken.take_while(|(number, key)| number == *key).count() as u32;
        things.insert(number, Arc::new(thing));
        number
    }

    pub(super) fn get(&self, number: u32) -> Result<Arc<T>> {
        self.things.lock().get(&number).cloned().ok_or(Errno::NOENT)
    }

    /// Removes an object and returns it, so that it is dropped without the lock.
    pub(super) fn remove(&self, number: u32) -> Result<Arc<T>> {
        self.things.lock().remove(&number).ok_or(Errno::NOENT)
    }

    /// The handle of the first object that satisfies the predicate.
    pub(super) fn position(&self, holds: impl Fn(&T) -> bool) -> Option<u32> {
        let things = self.things.lock();
        things
            .iter()
            .find(|(_, thing)| holds(thing))
            .map(|(number, _)| *number)
    }
}

pub(super) struct Device {
    pub(super) slot: &'static Slot,
    pub(super) vram: Option<Arc<Vram>>,
    pub(super) buffers: Table<Buffer>,
    pub(super) spaces: Table<AddressSpace>,
    pub(super) queues: Table<ExecQueue>,
    pub(super) lost: Arc<OnceLock<Loss>>,
}

impl Device {
    pub(super) fn new(slot: &'static Slot) -> Self {
        let vram = |size| {
            let used = faults::vram_used();
            Arc::new(Vram::new(
                faults::vram().unwrap_or(size),
                slot.pci,
                used.as_deref(),
            ))
        };
        Self {
            slot,
            vram: slot.model.vram.map(vram),
            buffers: Table::default(),
            spaces: Table::default(),
            queues: Table::default(),
            lost: Arc::default(),
        }
    }

    /// The error of every request on a device that the kernel has given up, or that is unplugged. A device that was given up
    /// can still be mapped.
    pub(super) fn refusal(&self, request: &str) -> Option<Errno> {
        match self.lost.get()? {
            Loss::Reset => None,
            Loss::Wedged if request == "mmap" => None,
            Loss::Wedged => Some(Errno::CANCELED),
            Loss::Gone => Some(Errno::NODEV),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_new_object_has_the_lowest_free_handle() {
        let table = Table::default();
        assert_eq!(["a", "b", "c"].map(|thing| table.add(thing)), [1, 2, 3]);
        table.remove(1).unwrap();
        table.remove(2).unwrap();
        assert_eq!(table.get(2).unwrap_err(), Errno::NOENT);
        assert_eq!(["d", "e", "f"].map(|thing| table.add(thing)), [1, 2, 4]);
        assert_eq!(*table.get(1).unwrap(), "d");
    }
}
