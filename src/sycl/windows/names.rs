//! The names of SYCL's functions on Windows: those of Microsoft's C++ compiler.

use std::ffi::CStr;

/// dpctl's library.
pub(in crate::sycl) const INTERFACE: &str = "DPCTLSyclInterface.dll";

pub(in crate::sycl) const CONTEXT_NATIVE: &CStr = c"?getNative@context@_V1@sycl@@AEBA_KXZ";
pub(in crate::sycl) const DEVICE_NATIVE: &CStr = c"?getNative@device@_V1@sycl@@AEBA_KXZ";
pub(in crate::sycl) const QUEUE_IS_EMPTY: &CStr = c"?ext_oneapi_empty@queue@_V1@sycl@@QEBA_NXZ";
pub(in crate::sycl) const EVENT_MAKE: &CStr =
    c"?make_event@detail@_V1@sycl@@YA?AVevent@23@_KAEBVcontext@23@_NW4backend@23@@Z";
pub(in crate::sycl) const EVENT_NATIVE: &CStr = c"?getNative@event@_V1@sycl@@AEBA_KXZ";

/// Microsoft's `operator new` and `operator delete` are linked into each library, and call these of the C runtime.
pub(in crate::sycl) const NEW: &CStr = c"malloc";
pub(in crate::sycl) const DELETE: &CStr = c"free";
