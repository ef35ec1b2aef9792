//! SYCL events.

use level_zero_sys as sys;

use super::library::Functions;
use super::reference::sealed::{self, Calls};
use super::reference::{Capsule, Class, Reference};
use super::{ContextRef, Error};

/// The class `sycl::event`.
#[derive(Debug)]
pub enum Event {}

/// A SYCL event (`DPCTLSyclEventRef`).
pub type EventRef = Reference<Event>;

/// `sycl::backend::ext_oneapi_level_zero`.
const LEVEL_ZERO: std::ffi::c_char = 2;

/// The first libsycl that makes an event of its own when it is asked to wrap none. The one of SYCL 2024 throws.
const MAKES_EVENTS: u32 = 8;

/// Bytes for a `sycl::event`: it is one `std::shared_ptr`, and a little more does no harm.
const SIZE: usize = 64;

/// `DPCTL_COMPLETE` of `DPCTLSyclEventStatusType`.
const COMPLETE: u32 = 3;

impl Class for Event {
    const NAME: &'static str = "SYCL event";
}

impl Capsule for Event {
    const NAME: &'static std::ffi::CStr = c"SyclEventRef";
    const USED_NAME: &'static std::ffi::CStr = c"used_SyclEventRef";
}

impl sealed::Class for Event {
    fn calls(functions: &Functions) -> Calls {
        Calls {
            copy_name: "DPCTLEvent_Copy",
            copy: functions.event_copy,
            delete: functions.event_delete,
            backend: functions.event_backend,
        }
    }
}

impl EventRef {
    /// An event of SYCL's own in a Level Zero context that is complete until its native event is reset, and again when
    /// that is signalled. SYCL owns the native event, which is valid as long as the reference.
    ///
    /// `None` when this SYCL runtime (2024 or older) cannot make one.
    ///
    /// # Errors
    /// [`Error::Backend`], [`Error::Failed`].
    pub fn create(context: &ContextRef) -> Result<Option<(Self, sys::ze_event_handle_t)>, Error> {
        context.require_level_zero()?;
        let library = context.library();
        if library.sycl_version() < MAKES_EVENTS {
            return Ok(None);
        }
        let failed = Error::Failed {
            function: "sycl::detail::make_event",
        };
        // SAFETY: the context is alive, there is room for an event, and it is deleted as it was made. Without a native
        // event SYCL makes one, and throws, which ends the process, only when the backend has none left.
        let event = unsafe {
            let room = (library.functions.operator_new)(SIZE);
            (library.functions.event_make)(room, 0, context.as_raw(), false, LEVEL_ZERO);
            Self::own(library, room)
        };
        let event = event.ok_or(failed.clone())?;
        // SAFETY: the reference is alive, and its native event has just been made.
        match unsafe { (library.functions.event_native)(event.as_raw()) } {
            0 => Err(failed),
            native => Ok(Some((event, std::ptr::with_exposed_provenance_mut(native)))),
        }
    }

    /// Waits until what the event stands for has run. dpctl keeps the errors of that work to itself.
    pub fn wait(&self) {
        // SAFETY: the reference is alive; dpctl catches what waiting throws.
        unsafe { (self.functions().event_wait)(self.as_raw()) };
    }

    /// Whether it has run already.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        // SAFETY: the reference is alive; dpctl catches what asking throws.
        unsafe { (self.functions().event_status)(self.as_raw()) == COMPLETE }
    }
}
