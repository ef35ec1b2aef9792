//! SYCL contexts, to which USM belongs, and devices.

use level_zero_sys as sys;

use super::classes::{ContextRef, DeviceRef};
use super::error::Error;

impl DeviceRef {
    /// The native Level Zero device, which lives as long as the driver.
    ///
    /// # Errors
    /// As for [`ContextRef::native`].
    pub fn native(&self) -> Result<sys::ze_device_handle_t, Error> {
        self.native_handle(&self.library().throwing.device_native)
    }
}

impl ContextRef {
    /// The native Level Zero context. SYCL owns it, and keeps it as long as a reference to this context lives.
    ///
    /// # Errors
    /// [`Error::Backend`] when the context is of another backend, [`Error::Failed`] when there is no handle,
    /// [`Error::Unavailable`], [`Error::Thrown`].
    pub fn native(&self) -> Result<sys::ze_context_handle_t, Error> {
        self.native_handle(&self.library().throwing.context_native)
    }

    /// The context's devices, in its order.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn devices(&self) -> Result<Vec<DeviceRef>, Error> {
        let functions = self.functions();
        // SAFETY: the reference is alive; the result is null or a vector that the caller deletes.
        let vector = unsafe { (functions.context_devices)(self.as_raw()) };
        if vector.is_null() {
            return Err(Error::Failed("DPCTLContext_GetDevices"));
        }
        // SAFETY: the vector is alive until it is deleted below; `GetAt` returns copies of its references.
        let devices = unsafe {
            (0..(functions.devices_size)(vector))
                .map(|index| {
                    let device = (functions.devices_at)(vector, index);
                    DeviceRef::own(self.library(), device, "DPCTLDeviceVector_GetAt")
                })
                .collect()
        };
        // SAFETY: deleted once.
        unsafe { (functions.devices_delete)(vector) };
        devices
    }
}
