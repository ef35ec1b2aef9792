//! Functions of the CPU runtime's own extensions.

use std::ffi::{CStr, c_void};
use std::{mem, ptr};

use super::serving::Runtime;
use crate::device::Driver;
use crate::error::{Error, Result};

/// The CPU runtime's driver, by which its extensions are found.
#[derive(Clone, Debug)]
pub(super) struct Extension {
    pub(super) runtime: &'static Runtime,
    pub(super) driver: Driver,
}

impl Extension {
    /// The selected runtime's.
    ///
    /// # Errors
    /// [`Error::NotCpuRuntime`] when another runtime was selected, and the errors of [`Runtime::select`].
    pub(super) fn get() -> Result<Self> {
        let runtime = Runtime::select()?;
        match Driver::all(runtime.library())?.into_iter().next() {
            Some(driver) => Ok(Self { runtime, driver }),
            None => Err(runtime.is_not_cpu()),
        }
    }

    /// The function of this name.
    ///
    /// # Errors
    /// [`Error::NotCpuRuntime`] when there is none.
    ///
    /// # Safety
    /// `F` must be the function's pointer type (`unsafe extern "C" fn ...`).
    pub(super) unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let mut address: *mut c_void = ptr::null_mut();
        // SAFETY: the driver is alive, the name ends in a null, and the address outlives the call.
        unsafe {
            call!(
                self.runtime.library(),
                zeDriverGetExtensionFunctionAddress(
                    self.driver.handle(),
                    name.as_ptr(),
                    &mut address
                )
            )
        }
        .map_err(|_| self.runtime.is_not_cpu())?;
        if address.is_null() {
            return Err(self.runtime.is_not_cpu());
        }
        // SAFETY: the caller guarantees the type of the function, whose address is not null.
        Ok(unsafe { mem::transmute_copy(&address) })
    }
}

impl Runtime {
    fn is_not_cpu(&self) -> Error {
        Error::NotCpuRuntime {
            serving: self.path(),
        }
    }
}
