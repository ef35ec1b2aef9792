//! The names of SYCL's functions on Linux: those of the Itanium C++ ABI.

use std::ffi::CStr;

/// dpctl's library, without a version.
pub(in crate::sycl) const INTERFACE: &str = "libDPCTLSyclInterface.so";

pub(in crate::sycl) const CONTEXT_NATIVE: &CStr = c"_ZNK4sycl3_V17context9getNativeEv";
pub(in crate::sycl) const DEVICE_NATIVE: &CStr = c"_ZNK4sycl3_V16device9getNativeEv";
pub(in crate::sycl) const QUEUE_IS_EMPTY: &CStr = c"_ZNK4sycl3_V15queue16ext_oneapi_emptyEv";
pub(in crate::sycl) const EVENT_MAKE: &CStr =
    c"_ZN4sycl3_V16detail10make_eventEmRKNS0_7contextEbNS0_7backendE";
pub(in crate::sycl) const EVENT_NATIVE: &CStr = c"_ZNK4sycl3_V15event9getNativeEv";

/// `operator new(std::size_t)`, and the `operator delete` for its memory.
pub(in crate::sycl) const NEW: &CStr = c"_Znwm";
pub(in crate::sycl) const DELETE: &CStr = c"_ZdlPv";
