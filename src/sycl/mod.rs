//! The SYCL runtime of this process, reached through dpctl.
//!
//! dpctl's library `libDPCTLSyclInterface` has C functions over SYCL's classes, which return references
//! (`DPCTLSyclContextRef` is a `sycl::context *`). [`ContextRef`], [`DeviceRef`], [`QueueRef`] and [`EventRef`] own
//! such references. Their native Level Zero handles come from `getNative()` of the libsycl that this dpctl uses, so
//! that memory can be allocated in SYCL's own context: kernels cannot mix contexts.
//!
//! This module loads no library. [`Library::get`] finds the one that `import dpctl` has loaded. Its failure is not cached, as
//! dpctl may be imported later.
//!
//! Sources: the headers `syclinterface/*.h` in dpctl's wheel (0.17 and 0.22); SYCL 2020 specification, "Common reference
//! semantics"; the extension `sycl_ext_oneapi_backend_level_zero` (which handle `get_native` returns).

mod backend;
mod call;
mod classes;
mod context;
mod error;
mod event;
mod library;
#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod platform;
#[cfg(windows)]
#[path = "windows/mod.rs"]
mod platform;
mod poll;
mod queue;
mod reference;

pub use backend::Backend;
pub use classes::{ContextRef, DeviceRef, EventRef, QueueRef};
pub use error::Error;
pub use library::{Library, RawRef};
pub use reference::{Capsule, Class, Reference};

/// The classes of a [`Reference`].
pub mod class {
    pub use super::classes::{Context, Device, Event, Queue};
}
