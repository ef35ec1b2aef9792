//! Ownership of OpenCL's objects.

use opencl_sys::cl_int;

use super::Error;
use super::quiesce::Call;

/// An object of OpenCL, which is released once, when this is dropped. A launch in flight holds it by OpenCL's own count.
pub struct Owned<H: Copy> {
    /// The object.
    pub raw: H,
    release: unsafe extern "C" fn(H) -> cl_int,
}

// SAFETY: OpenCL's functions are thread-safe except clSetKernelArg, which `Kernel` guards by a lock.
unsafe impl<H: Copy> Send for Owned<H> {}
// SAFETY: as above.
unsafe impl<H: Copy> Sync for Owned<H> {}

impl<H: Copy> Owned<H> {
    /// The object that `operation` has made with this status.
    ///
    /// # Safety
    /// With success, `raw` is the caller's, and `release` releases it.
    pub unsafe fn made(
        operation: &'static str,
        raw: H,
        code: cl_int,
        release: unsafe extern "C" fn(H) -> cl_int,
    ) -> Result<Self, Error> {
        Error::check(operation, code).map(|()| Self { raw, release })
    }
}

impl<H: Copy> Drop for Owned<H> {
    fn drop(&mut self) {
        let Ok(_call) = Call::begin() else { return };
        // SAFETY: who made it vouched for that.
        unsafe { (self.release)(self.raw) };
    }
}
