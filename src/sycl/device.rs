//! SYCL devices.

use level_zero_sys as sys;

use super::classes::DeviceRef;
use super::error::Error;

impl DeviceRef {
    /// The native Level Zero device, which lives as long as the driver.
    ///
    /// # Errors
    /// [`Error::Backend`] when the device is of another backend, [`Error::Failed`] when there is no handle,
    /// [`Error::Unavailable`], [`Error::Thrown`].
    pub fn native(&self) -> Result<sys::ze_device_handle_t, Error> {
        self.require_level_zero()?;
        let library = self.library();
        // SAFETY: the reference is a `sycl::device *`, which is the `this` of the method. For Level Zero the method does not
        // add a reference to the handle.
        let handle = library.call(&library.throwing.device_native, |native| unsafe {
            native(self.as_raw())
        })?;
        match handle {
            0 => Err(Error::Failed("sycl::device::getNative")),
            handle => Ok(std::ptr::with_exposed_provenance_mut(handle)),
        }
    }
}
