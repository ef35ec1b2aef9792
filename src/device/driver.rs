//! Drivers, which own devices and make contexts.

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use level_zero_sys as sys;
use once_cell::race::OnceBox;

use super::{Device, known};
use crate::call::enumerate;
use crate::error::Result;

/// A Level Zero driver. Cheap to clone. By the specification, a driver handle is valid until the process exits.
///
/// Source: Level Zero specification, "Core programming guide", Drivers and devices.
#[derive(Clone, Debug)]
pub struct Driver(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    library: &'static sys::Library,
    handle: sys::ze_driver_handle_t,
    /// Queried once. The devices refer to the driver, which lives as long as the process.
    devices: OnceBox<Vec<Device>>,
}

// SAFETY: the specification allows any thread to use a driver handle.
unsafe impl Send for Inner {}
// SAFETY: as above, the calls that take a driver handle may run at the same time.
unsafe impl Sync for Inner {}

impl Driver {
    /// Every driver of an initialised library.
    pub(crate) fn all(library: &'static sys::Library) -> Result<Vec<Self>> {
        let handles = enumerate(ptr::null_mut(), |count, handles| {
            // SAFETY: `enumerate` passes either null or room for `count` handles.
            unsafe { call!(library, zeDriverGet(count, handles)) }
        })?;
        Ok(handles
            .into_iter()
            .map(|handle| {
                let devices = OnceBox::new();
                Self(Arc::new(Inner {
                    library,
                    handle,
                    devices,
                }))
            })
            .collect())
    }

    /// The GPUs and CPUs of this driver; other accelerators do not execute SYCL kernels.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with the driver's result.
    pub fn devices(&self) -> Result<&[Device]> {
        if let Some(devices) = self.0.devices.get() {
            return Ok(devices);
        }
        let handles = enumerate(ptr::null_mut(), |count, handles| {
            // SAFETY: the driver handle lives as long as the process; `handles` is null or has room for `count`.
            unsafe { call!(self.library(), zeDeviceGet(self.handle(), count, handles)) }
        })?;
        let devices: Result<Vec<Device>> = handles
            .into_iter()
            .map(|handle| Device::new(self, handle))
            .collect();
        let devices = devices?.into_iter().filter(Device::is_usable).collect();
        Ok(self.0.devices.get_or_init(|| Box::new(devices)))
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
        match listed.cloned().or_else(|| known::of_driver(self, handle)) {
            Some(known) => Ok(known),
            None => Device::new(self, handle),
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
        let root_device = self.library().extensions().zeDeviceGetRootDevice?;
        let mut root = ptr::null_mut();
        // SAFETY: the device is the driver's, and the result outlives the call.
        let result = unsafe { root_device(device.handle(), &mut root) };
        (result == sys::ZE_RESULT_SUCCESS && !root.is_null()).then_some(root)
    }

    /// Whether the driver has more than one card. The tiles of a card count as one.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_several_cards(&self) -> Result<bool> {
        let Some((first, others)) = self.devices()?.split_first() else {
            return Ok(false);
        };
        let root = self.root(first);
        let is_another = |device: &Device| root.is_none() || self.root(device) != root;
        Ok(others.iter().any(is_another))
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

    /// Whether `part` is `device`, a device of this driver, or one of its sub-devices at any depth.
    pub(crate) fn is_part(
        &self,
        device: sys::ze_device_handle_t,
        part: sys::ze_device_handle_t,
    ) -> Result<bool> {
        if device == part {
            return Ok(true);
        }
        for below in self.parts(device)? {
            if self.is_part(below, part)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The sub-devices of a device of this driver.
    fn parts(&self, device: sys::ze_device_handle_t) -> Result<Vec<sys::ze_device_handle_t>> {
        enumerate(ptr::null_mut(), |count, handles| {
            // SAFETY: the device is the driver's; `handles` is null or has room for `count`.
            unsafe {
                call!(
                    self.library(),
                    zeDeviceGetSubDevices(device, count, handles)
                )
            }
        })
    }

    /// The API version that the driver implements, as (major, minor).
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with the driver's result.
    pub fn api_version(&self) -> Result<(u16, u16)> {
        let mut version = sys::ze_api_version_t(0);
        // SAFETY: the handle is valid and `version` outlives the call.
        unsafe {
            call!(
                self.library(),
                zeDriverGetApiVersion(self.handle(), &mut version)
            )
        }?;
        Ok(((version.0 >> 16) as u16, (version.0 & 0xffff) as u16))
    }

    /// The library of the driver.
    #[must_use]
    pub fn library(&self) -> &'static sys::Library {
        self.0.library
    }

    /// The raw handle, for calls that this crate does not wrap.
    #[must_use]
    pub fn handle(&self) -> sys::ze_driver_handle_t {
        self.0.handle
    }
}

/// The text of a fixed-size name field, up to the first NUL.
pub(crate) fn text(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field
        .iter()
        .map(|&byte| byte.cast_unsigned())
        .take_while(|&byte| byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
