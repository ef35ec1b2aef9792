//! The devices of this process by their handles, so that recorded places have a name and each device one object.

use std::collections::BTreeMap;
use std::ptr;

use level_zero_sys as sys;
use zeusm_process::{ForkLock, RwLock, held_at_fork};

use super::{Device, Driver};

type Table = BTreeMap<usize, Device>;

/// By the handle's address; a handle is valid until the process exits. A thread that holds the lock does not call other
/// modules. A fork's child inherits the table.
static KNOWN: ForkLock<RwLock<Table>> = ForkLock::new(RwLock::new(Table::new()));
held_at_fork!(KNOWN);

/// Adds a device, unless its handle is known; returns the one of the handle, which records whether the device is lost.
pub(super) fn register(device: Device) -> Device {
    let mut table = KNOWN.write();
    let known = table.entry(device.handle().addr());
    let known = known.or_insert_with(|| device.clone()).clone();
    drop(table);
    if is_of(&known, device.driver()) {
        known
    } else {
        device
    }
}

/// The device of a driver with this handle, if this process has used it.
pub(super) fn of_driver(driver: &Driver, handle: sys::ze_device_handle_t) -> Option<Device> {
    Device::of_handle(handle.addr()).filter(|known| is_of(known, driver))
}

/// Whether a device is of a driver. Two libraries may use the same handles.
fn is_of(device: &Device, driver: &Driver) -> bool {
    device.driver().handle() == driver.handle()
        && ptr::eq(device.driver().library(), driver.library())
}

impl Device {
    /// The device whose handle has this address, if this process has used it.
    #[must_use]
    pub fn of_handle(address: usize) -> Option<Self> {
        KNOWN.read().get(&address).cloned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use super::*;
    use crate::Runtime;

    /// Of a sub-device, each use made another one, and only one of them knew that the device was lost.
    #[test]
    #[cfg_attr(windows, ignore = "the CPU runtime is for Linux")]
    fn a_handle_has_one_object() {
        let device = Runtime::get().unwrap().default_device().unwrap();
        let again = Device::new(device.driver(), device.handle()).unwrap();
        assert!(Arc::ptr_eq(&device.0, &again.0));
    }
}
