//! SYCL contexts: what USM belongs to.

use level_zero_sys as sys;

use super::library::Functions;
use super::reference::sealed::{self, Calls, Comparison};
use super::reference::{Capsule, Class, Comparable, Reference};
use super::{DeviceRef, Error};
use crate::usm::UsmKind;

/// The class `sycl::context`.
#[derive(Debug)]
pub enum Context {}

/// A SYCL context (`DPCTLSyclContextRef`).
pub type ContextRef = Reference<Context>;

impl Class for Context {
    const NAME: &'static str = "SYCL context";
}

impl Capsule for Context {
    const NAME: &'static std::ffi::CStr = c"SyclContextRef";
    const USED_NAME: &'static std::ffi::CStr = c"used_SyclContextRef";
}

impl Comparable for Context {}

impl sealed::Class for Context {
    fn calls(functions: &Functions) -> Calls {
        Calls {
            copy_name: "DPCTLContext_Copy",
            copy: functions.context_copy,
            delete: functions.context_delete,
            backend: functions.context_backend,
        }
    }
}

impl sealed::Comparable for Context {
    fn comparison(functions: &Functions) -> Comparison {
        Comparison {
            are_eq: functions.context_are_eq,
            hash: functions.context_hash,
        }
    }
}

impl ContextRef {
    /// The Level Zero context below; SYCL owns it, and keeps it as long as a reference to this context lives.
    ///
    /// # Errors
    /// [`Error::Backend`] when the context is of another backend, [`Error::Failed`] when there is no handle.
    pub fn native(&self) -> Result<sys::ze_context_handle_t, Error> {
        self.require_level_zero()?;
        // SAFETY: the reference is a `sycl::context *`, which is the `this` of the method; for Level Zero it hands
        // the handle out without counting it, and throws nothing.
        let handle = unsafe { (self.functions().context_native)(self.as_raw()) };
        match handle {
            0 => Err(Error::Failed {
                function: "sycl::context::getNative",
            }),
            handle => Ok(std::ptr::with_exposed_provenance_mut(handle)),
        }
    }

    /// How many devices the context has.
    #[must_use]
    pub fn device_count(&self) -> usize {
        // SAFETY: the reference is alive; the list is kept in the context, so nothing is thrown.
        unsafe { (self.functions().context_device_count)(self.as_raw()) }
    }

    /// The context's devices, in its order.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn devices(&self) -> Result<Vec<DeviceRef>, Error> {
        let functions = self.functions();
        // SAFETY: the reference is alive; the answer is null or a vector that is ours to delete.
        let vector = unsafe { (functions.context_devices)(self.as_raw()) };
        if vector.is_null() {
            return Err(Error::Failed {
                function: "DPCTLContext_GetDevices",
            });
        }
        // SAFETY: the vector is alive until it is deleted below; `GetAt` gives copies of its references.
        let devices = unsafe {
            (0..(functions.devices_size)(vector))
                .map(|index| DeviceRef::own(self.library(), (functions.devices_at)(vector, index)))
                .collect::<Option<_>>()
        };
        // SAFETY: deleted once.
        unsafe { (functions.devices_delete)(vector) };
        devices.ok_or(Error::Failed {
            function: "DPCTLDeviceVector_GetAt",
        })
    }

    /// What kind of USM of this context `pointer` points into; `None` when it is not USM of this context.
    ///
    /// Works for every backend. The allocation must not be freed meanwhile: SYCL would answer with an exception,
    /// which ends the process.
    #[must_use]
    pub fn pointer_kind(&self, pointer: usize) -> Option<UsmKind> {
        let pointer = std::ptr::without_provenance_mut(pointer);
        // SAFETY: the reference is alive; SYCL looks the pointer up and does not follow it. It throws only when
        // the backend fails, and then unwinding ends the process.
        match unsafe { (self.functions().usm_type)(pointer, self.as_raw()) } {
            1 => Some(UsmKind::Device),
            2 => Some(UsmKind::Shared),
            3 => Some(UsmKind::Host),
            _ => None,
        }
    }

    /// The device that the allocation behind `pointer` belongs to, for host USM the context's first one; `None`
    /// when it is not USM of this context. See [`pointer_kind`](Self::pointer_kind).
    #[must_use]
    pub fn pointer_device(&self, pointer: usize) -> Option<DeviceRef> {
        // SYCL throws for what is not USM, and dpctl lets that through, so it has to be asked first.
        self.pointer_kind(pointer)?;
        let pointer = std::ptr::without_provenance_mut(pointer);
        // SAFETY: as above, and the pointer is known to be USM of this context; the answer is a new reference.
        unsafe {
            let device = (self.functions().usm_device)(pointer, self.as_raw());
            DeviceRef::own(self.library(), device)
        }
    }
}
