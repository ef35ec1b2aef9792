//! The functions of dpctl's C library and of the SYCL runtime in this process.

use std::ffi::{c_char, c_uint, c_void};
use std::path::{Path, PathBuf};

use once_cell::race::OnceBox;

use super::error::Error;
use super::platform::{self, Handler, Loaded, names};
use crate::shared_library;

/// A pointer to an object of a SYCL class: `DPCTLSyclContextRef` and the like in dpctl's headers.
pub type RawRef = *mut c_void;

/// Declares the table of required functions, and their lookup.
macro_rules! functions {
    ($($field:ident = $name:literal as $type:ty;)*) => {
        /// The functions of dpctl that catch C++ exceptions and return null or zero then, or that only read an object's
        /// fields. Functions of the latter kind that allocate have the unwinding ABI, so that `std::bad_alloc` terminates
        /// the process instead of being undefined behaviour.
        #[derive(Debug, Clone, Copy)]
        pub struct Functions {
            $(pub(super) $field: $type,)*
        }

        impl Functions {
            fn of(loaded: &Loaded) -> Result<Self, Error> {
                Ok(Self {
                    $(
                        // SAFETY: this is the function's type in the headers of dpctl 0.17 and 0.22.
                        $field: unsafe { loaded.symbol::<$type>($name) }.ok_or_else(|| Error::Symbol {
                            name: $name.to_str().unwrap_or_default(),
                            library: loaded.path().to_owned(),
                        })?,
                    )*
                })
            }
        }
    };
}

/// Declares the table of functions that may throw, with the feature of each.
macro_rules! throwing {
    ($($(#[$note:meta])* $field:ident = $symbol:expr, $name:literal, $purpose:literal as $type:ty;)*) => {
        /// The functions that may throw. Each is optional: without it, only its feature is missing.
        #[derive(Debug, Clone, Copy)]
        pub(super) struct Throwing {
            $($(#[$note])* pub(super) $field: MayThrow<$type>,)*
        }

        impl Throwing {
            fn of(loaded: &Loaded) -> Self {
                Self {
                    $($field: MayThrow {
                        name: $name,
                        purpose: $purpose,
                        // SAFETY: this is the function's type in dpctl's headers, or, for SYCL's methods, by the
                        // system's C++ ABI.
                        found: unsafe { loaded.symbol::<$type>($symbol) },
                    },)*
                }
            }
        }
    };
}

/// A function that may throw. [`Library::call`] calls it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MayThrow<F> {
    pub(super) name: &'static str,
    /// The feature that needs it.
    purpose: &'static str,
    found: Option<F>,
}

/// The method of a class that returns an object's native handle. For Level Zero it does not add a reference to the handle.
pub(super) type Native = unsafe extern "C-unwind" fn(RawRef) -> usize;

functions! {
    context_copy = c"DPCTLContext_Copy" as unsafe extern "C" fn(RawRef) -> RawRef;
    context_delete = c"DPCTLContext_Delete" as unsafe extern "C" fn(RawRef);
    context_are_eq = c"DPCTLContext_AreEq" as unsafe extern "C" fn(RawRef, RawRef) -> bool;
    context_backend = c"DPCTLContext_GetBackend" as unsafe extern "C-unwind" fn(RawRef) -> c_uint;
    context_devices = c"DPCTLContext_GetDevices" as unsafe extern "C" fn(RawRef) -> RawRef;

    device_copy = c"DPCTLDevice_Copy" as unsafe extern "C" fn(RawRef) -> RawRef;
    device_delete = c"DPCTLDevice_Delete" as unsafe extern "C" fn(RawRef);
    device_are_eq = c"DPCTLDevice_AreEq" as unsafe extern "C" fn(RawRef, RawRef) -> bool;
    device_backend = c"DPCTLDevice_GetBackend" as unsafe extern "C-unwind" fn(RawRef) -> c_uint;

    devices_size = c"DPCTLDeviceVector_Size" as unsafe extern "C" fn(RawRef) -> usize;
    devices_at = c"DPCTLDeviceVector_GetAt" as unsafe extern "C" fn(RawRef, usize) -> RawRef;
    devices_delete = c"DPCTLDeviceVector_Delete" as unsafe extern "C" fn(RawRef);

    queue_copy = c"DPCTLQueue_Copy" as unsafe extern "C" fn(RawRef) -> RawRef;
    queue_delete = c"DPCTLQueue_Delete" as unsafe extern "C" fn(RawRef);
    queue_are_eq = c"DPCTLQueue_AreEq" as unsafe extern "C" fn(RawRef, RawRef) -> bool;
    queue_backend = c"DPCTLQueue_GetBackend" as unsafe extern "C-unwind" fn(RawRef) -> c_uint;
    queue_context = c"DPCTLQueue_GetContext" as unsafe extern "C-unwind" fn(RawRef) -> RawRef;
    queue_device = c"DPCTLQueue_GetDevice" as unsafe extern "C" fn(RawRef) -> RawRef;
    queue_is_in_order = c"DPCTLQueue_IsInOrder" as unsafe extern "C-unwind" fn(RawRef) -> bool;
    queue_barrier = c"DPCTLQueue_SubmitBarrier" as unsafe extern "C" fn(RawRef) -> RawRef;
    queue_barrier_after = c"DPCTLQueue_SubmitBarrierForEvents"
        as unsafe extern "C" fn(RawRef, *const RawRef, usize) -> RawRef;

    event_copy = c"DPCTLEvent_Copy" as unsafe extern "C" fn(RawRef) -> RawRef;
    event_delete = c"DPCTLEvent_Delete" as unsafe extern "C" fn(RawRef);
    event_backend = c"DPCTLEvent_GetBackend" as unsafe extern "C-unwind" fn(RawRef) -> c_uint;
    event_status = c"DPCTLEvent_GetCommandExecutionStatus" as unsafe extern "C" fn(RawRef) -> c_uint;
    event_wait = c"DPCTLEvent_Wait" as unsafe extern "C" fn(RawRef);
}

throwing! {
    context_native = names::CONTEXT_NATIVE, "sycl::context::getNative",
        "memory in a SYCL context" as Native;
    device_native = names::DEVICE_NATIVE, "sycl::device::getNative",
        "memory in a SYCL context" as Native;
    queue_wait = c"DPCTLQueue_Wait", "DPCTLQueue_Wait",
        "waiting for a SYCL queue" as unsafe extern "C-unwind" fn(RawRef);
    /// From the extension `sycl_ext_oneapi_queue_empty`, which is optional.
    queue_is_empty = names::QUEUE_IS_EMPTY, "sycl::queue::ext_oneapi_empty",
        "question whether a SYCL queue is empty" as unsafe extern "C-unwind" fn(RawRef) -> bool;
    /// `sycl::detail::make_event(native handle, context const &, keep ownership, backend)`. Its result is not trivially
    /// copyable, and is written to the address in the hidden first argument.
    event_make = names::EVENT_MAKE, "sycl::detail::make_event",
        "SYCL event that Level Zero signals"
        as unsafe extern "C-unwind" fn(RawRef, usize, RawRef, bool, c_char) -> RawRef;
    event_native = names::EVENT_NATIVE, "sycl::event::getNative",
        "SYCL event that Level Zero signals" as Native;
    /// `operator new(std::size_t)`, whose memory dpctl's `DPCTLEvent_Delete` frees; what stands for it may return null.
    operator_new = names::NEW, "operator new",
        "SYCL event that Level Zero signals" as unsafe extern "C-unwind" fn(usize) -> RawRef;
    /// `operator delete`, for storage in which no event was constructed.
    operator_delete = names::DELETE, "operator delete",
        "SYCL event that Level Zero signals" as unsafe extern "C-unwind" fn(RawRef);
}

/// dpctl's C library and the SYCL runtime that it uses, in this process.
#[derive(Debug)]
pub struct Library {
    pub(super) functions: Functions,
    pub(super) throwing: Throwing,
    /// Catches their exceptions; `None` where that is not supported.
    handler: Option<Handler>,
    sycl: PathBuf,
    sycl_version: u32,
}

impl Library {
    /// Finds the library that `import dpctl` has loaded, without loading anything. A success is cached; after a failure the
    /// next call searches again.
    ///
    /// # Errors
    /// [`Error::NoDpctl`] when it is not loaded, [`Error::Symbol`] when it is older than dpctl 0.17.
    pub fn get() -> Result<&'static Self, Error> {
        static FOUND: OnceBox<Library> = OnceBox::new();
        FOUND.get_or_try_init(|| Self::find().map(Box::new))
    }

    fn find() -> Result<Self, Error> {
        let loaded = Loaded::find().ok_or_else(|| Error::NoDpctl(platform::sycl()))?;
        let functions = Functions::of(&loaded)?;
        let throwing = Throwing::of(&loaded);
        // A method that is found through dpctl's library belongs to the libsycl that dpctl uses, if there are two.
        let methods = [
            throwing.context_native.found,
            throwing.device_native.found,
            throwing.event_native.found,
        ];
        let sycl = methods
            .into_iter()
            .flatten()
            .find_map(|method| shared_library::path_of(method as *const c_void))
            .or_else(platform::sycl)
            .unwrap_or_else(|| PathBuf::from("SYCL"));
        let file = sycl.file_name().and_then(|name| name.to_str());
        Ok(Self {
            functions,
            throwing,
            handler: loaded.handler(),
            sycl_version: file.and_then(platform::version).unwrap_or_default(),
            sycl,
        })
    }

    /// Calls a function that may throw.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the function is missing or its exceptions cannot be caught; [`Error::Thrown`].
    pub(super) fn call<F: Copy, T>(
        &self,
        function: &MayThrow<F>,
        body: impl FnOnce(F) -> T,
    ) -> Result<T, Error> {
        let unavailable = |reason: String| Error::Unavailable {
            purpose: function.purpose,
            reason,
        };
        let found = function.found.ok_or_else(|| {
            unavailable(format!(
                "{} has no function {}",
                self.sycl.display(),
                function.name
            ))
        })?;
        let handler = self.handler.as_ref().ok_or_else(|| {
            unavailable(format!(
                "exceptions of {} cannot be caught here",
                self.sycl.display()
            ))
        })?;
        handler.call(function.name, || body(found))
    }

    /// The path of the SYCL runtime that it uses.
    #[must_use]
    pub fn sycl_path(&self) -> &Path {
        &self.sycl
    }

    /// The SYCL runtime's major version, from its file name; 0 when the name has none.
    pub(super) fn sycl_version(&self) -> u32 {
        self.sycl_version
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_error_without_dpctl_has_advice() {
        // The search runs twice, as a failure is not cached.
        for _ in 0..2 {
            let error = Library::get().unwrap_err();
            assert_eq!(error, Error::NoDpctl(None));
            assert!(error.to_string().contains("pip install dpctl"));
        }
    }

    #[test]
    fn a_missing_function_is_named() {
        let loaded = Loaded::this();
        let error = Functions::of(&loaded).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("DPCTLContext_Copy"), "{message}");
        let path = loaded.path().display().to_string();
        assert!(message.contains(&path), "{message}");
    }
}
