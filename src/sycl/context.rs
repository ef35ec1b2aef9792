//! SYCL contexts, to which USM belongs.

use level_zero_sys as sys;

use super::classes::{ContextRef, DeviceRef};
use super::error::Error;
use crate::usm::UsmKind;

impl ContextRef {
    /// The native Level Zero context. SYCL owns it, and keeps it as long as a reference to this context lives.
    ///
    /// # Errors
    /// [`Error::Backend`] when the context is of another backend, [`Error::Failed`] when there is no handle,
    /// [`Error::Unavailable`], [`Error::Thrown`].
    pub fn native(&self) -> Result<sys::ze_context_handle_t, Error> {
        self.require_level_zero()?;
        let library = self.library();
        // SAFETY: the reference is a `sycl::context *`, which is the `this` of the method. For Level Zero the method does not
        // add a reference to the handle.
        let handle = library.call(&library.throwing.context_native, |native| unsafe {
            native(self.as_raw())
        })?;
        match handle {
            0 => Err(Error::Failed("sycl::context::getNative")),
            handle => Ok(std::ptr::with_exposed_provenance_mut(handle)),
        }
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
                .map(|index| DeviceRef::own(self.library(), (functions.devices_at)(vector, index)))
                .collect::<Option<_>>()
        };
        // SAFETY: deleted once.
        unsafe { (functions.devices_delete)(vector) };
        devices.ok_or(Error::Failed("DPCTLDeviceVector_GetAt"))
    }

    /// The kind of USM that `pointer` points into; `None` when it is not USM of this context. Some drivers also look up
    /// pointers of their other contexts.
    ///
    /// Works for every backend.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Thrown`].
    pub fn pointer_kind(&self, pointer: usize) -> Result<Option<UsmKind>, Error> {
        let pointer = std::ptr::without_provenance_mut(pointer);
        let library = self.library();
        // SAFETY: the reference is alive; SYCL looks the pointer up and does not dereference it.
        let kind = library.call(&library.throwing.usm_type, |usm_type| unsafe {
            usm_type(pointer, self.as_raw())
        })?;
        Ok(match kind {
            1 => Some(UsmKind::Device),
            2 => Some(UsmKind::Shared),
            3 => Some(UsmKind::Host),
            _ => None,
        })
    }

    /// The device of the allocation that contains `pointer`, for host USM the context's first device; `None` for a null
    /// pointer.
    ///
    /// # Errors
    /// [`Error::Thrown`] when it is not USM of this context; [`Error::Unavailable`]. See
    /// [`pointer_kind`](Self::pointer_kind).
    pub fn pointer_device(&self, pointer: usize) -> Result<Option<DeviceRef>, Error> {
        let pointer = std::ptr::without_provenance_mut(pointer);
        let library = self.library();
        // SAFETY: the reference is alive; SYCL looks the pointer up and does not dereference it.
        let device = library.call(&library.throwing.usm_device, |usm_device| unsafe {
            usm_device(pointer, self.as_raw())
        })?;
        // SAFETY: the result is null or a new reference.
        Ok(unsafe { DeviceRef::own(library, device) })
    }
}
