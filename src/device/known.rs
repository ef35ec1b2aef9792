//! The devices of this process by their handles, so that recorded places have a name.

use std::collections::BTreeMap;

use super::Device;
use crate::process::{RwLock, held_at_fork};

type Table = BTreeMap<usize, Device>;

/// By the handle's address; a handle is valid until the process exits. A thread that holds the lock does not call other
/// modules. A fork's child inherits the table.
static KNOWN: RwLock<Table> = RwLock::new(Table::new());
held_at_fork!(KNOWN: Table);

/// Adds a device, unless it is known.
pub(super) fn register(device: &Device) {
    let handle = device.handle().addr();
    if !KNOWN.read().contains_key(&handle) {
        KNOWN.write().insert(handle, device.clone());
    }
}

impl Device {
    /// The device whose handle has this address, if this process has used it.
    #[must_use]
    pub fn of_handle(address: usize) -> Option<Self> {
        KNOWN.read().get(&address).cloned()
    }
}
