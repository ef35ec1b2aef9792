//! Drivers.

use std::ffi::c_char;
use std::ptr;

use level_zero_sys as sys;

use crate::call::enumerate;
use crate::error::Result;

/// A Level Zero driver. Cheap to clone. By the specification, a driver handle is valid until the process exits.
///
/// Source: Level Zero specification, "Core programming guide", Drivers and devices.
#[derive(Clone, Debug)]
pub struct Driver {
    library: &'static sys::Library,
    handle: sys::ze_driver_handle_t,
}

// SAFETY: the specification allows any thread to use a driver handle.
unsafe impl Send for Driver {}
// SAFETY: as above, the calls that take a driver handle may run at the same time.
unsafe impl Sync for Driver {}

impl Driver {
    /// Every driver of an initialised library.
    pub(crate) fn all(library: &'static sys::Library) -> Result<Vec<Self>> {
        let handles = enumerate(ptr::null_mut(), |count, handles| {
            // SAFETY: `enumerate` passes either null or room for `count` handles.
            unsafe { call!(library, zeDriverGet(count, handles)) }
        })?;
        Ok(handles
            .into_iter()
            .map(|handle| Self { library, handle })
            .collect())
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
    pub(super) fn parts(
        &self,
        device: sys::ze_device_handle_t,
    ) -> Result<Vec<sys::ze_device_handle_t>> {
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

    /// Whether the driver has the extension of this name.
    pub(crate) fn has_extension(&self, name: &str) -> Result<bool> {
        let empty = sys::ze_driver_extension_properties_t::default();
        let extensions = enumerate(empty, |count, list| {
            // SAFETY: the driver lives as long as the process; `list` is null or has room for `count`.
            unsafe {
                call!(
                    self.library(),
                    zeDriverGetExtensionProperties(self.handle(), count, list)
                )
            }
        })?;
        Ok(extensions.iter().any(|it| text(&it.name) == name))
    }

    /// The library of the driver.
    #[must_use]
    pub fn library(&self) -> &'static sys::Library {
        self.library
    }

    /// The raw handle, for calls that this crate does not wrap.
    #[must_use]
    pub fn handle(&self) -> sys::ze_driver_handle_t {
        self.handle
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
