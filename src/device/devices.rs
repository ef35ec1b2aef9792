//! The devices of the drivers. They are listed once, and each handle has one object, so that all its users know of its loss and
//! recorded places have a name.

use std::collections::BTreeMap;
use std::ptr;

use level_zero_sys as sys;
use zeusm_process::{ForkLock, held_at_fork};

use super::driver::Driver;
use super::properties::Device;
use crate::call::enumerate;
use crate::error::Result;

type Table = BTreeMap<usize, Device>;
type Lists = BTreeMap<(usize, usize), &'static [Device]>;

/// By the handle's address; a handle is valid until the process exits. A thread that holds the lock does not call other
/// modules. A fork's child inherits the table.
static KNOWN: ForkLock<Table> = ForkLock::new(Table::new());
held_at_fork!(KNOWN);

/// The devices of each driver, by the addresses of its library and its handle. They are never freed, as the driver lives as long
/// as the process. A fork's child inherits the table.
static LISTED: ForkLock<Lists> = ForkLock::new(Lists::new());
held_at_fork!(LISTED);

/// Adds a device, unless its handle is known; returns the one of the handle, which records whether the device is lost.
fn register(device: Device) -> Device {
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

/// Whether a device is of a driver. Two libraries may use the same handles.
fn is_of(device: &Device, driver: &Driver) -> bool {
    device.driver().handle() == driver.handle()
        && ptr::eq(device.driver().library(), driver.library())
}

impl Driver {
    /// The GPUs and CPUs of this driver; other accelerators do not execute SYCL kernels.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with the driver's result.
    pub fn devices(&self) -> Result<&'static [Device]> {
        let key = (ptr::from_ref(self.library()).addr(), self.handle().addr());
        if let Some(devices) = LISTED.read().get(&key) {
            return Ok(devices);
        }
        let handles = enumerate(ptr::null_mut(), |count, handles| {
            // SAFETY: the driver handle lives as long as the process; `handles` is null or has room for `count`.
            unsafe { call!(self.library(), zeDeviceGet(self.handle(), count, handles)) }
        })?;
        let devices: Result<Vec<Device>> = handles
            .into_iter()
            .map(|handle| Device::new(self, handle).map(register))
            .collect();
        let devices: Vec<_> = devices?.into_iter().filter(Device::is_usable).collect();
        let mut listed = LISTED.write();
        Ok(listed.entry(key).or_insert_with(|| devices.leak()))
    }

    /// Whether it is zeusm's CPU runtime, which its devices' names identify.
    pub(crate) fn is_cpu_runtime(&self) -> bool {
        let is_one = |device: &Device| device.name().starts_with("zeusm CPU runtime");
        self.devices()
            .is_ok_and(|devices| devices.iter().all(is_one))
    }

    /// The device of this driver with a foreign handle, which may be a sub-device.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with the driver's result.
    ///
    /// # Safety
    /// `handle` must be a device of this driver.
    pub unsafe fn device(&self, handle: sys::ze_device_handle_t) -> Result<Device> {
        let listed = self
            .devices()?
            .iter()
            .find(|device| device.handle() == handle);
        let used = || Device::of_handle(handle.addr()).filter(|used| is_of(used, self));
        match listed.cloned().or_else(used) {
            Some(known) => Ok(known),
            None => Device::new(self, handle).map(register),
        }
    }

    /// Whether `handle` is a device, a sub-device or a root device of this driver. It may be any address, as it is only
    /// compared.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with the driver's result.
    pub fn lists(&self, handle: sys::ze_device_handle_t) -> Result<bool> {
        for device in self.devices()? {
            if self.is_part(device.handle(), handle)? || self.root(device) == Some(handle) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The device that `device` is a sub-device of: a driver may list sub-devices only (`ZE_FLAT_DEVICE_HIERARCHY=COMBINED`),
    /// and SYCL's composite devices are their root devices.
    fn root(&self, device: &Device) -> Option<sys::ze_device_handle_t> {
        let (library, mut root) = (self.library(), ptr::null_mut());
        // SAFETY: the device is the driver's, and the result outlives the call.
        unsafe { call!(library, zeDeviceGetRootDevice(device.handle(), &mut root)) }.ok()?;
        (!root.is_null()).then_some(root)
    }

    /// Whether the driver has more than one card. The tiles of a card count as one.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_several_cards(&self) -> Result<bool> {
        let mut devices = self.devices()?.iter();
        let root = devices.next().and_then(|first| self.root(first));
        Ok(devices.any(|device| root.is_none() || self.root(device) != root))
    }

    /// The device of which `part` is a sub-device, and its number there.
    pub(crate) fn whole_of(&self, part: sys::ze_device_handle_t) -> Result<Option<(Device, u32)>> {
        for device in self.devices()? {
            let parts = self.parts(device.handle())?;
            if let Some(number) = parts.iter().position(|&handle| handle == part) {
                return Ok(Some((device.clone(), number as u32)));
            }
        }
        Ok(None)
    }
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
        let made = Device::new(device.driver(), device.handle());
        let again = register(made.unwrap());
        assert!(Arc::ptr_eq(&device.0, &again.0));
    }
}
