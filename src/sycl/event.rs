//! SYCL events.

use super::library::Functions;
use super::reference::sealed::{self, Calls};
use super::reference::{Capsule, Class, Reference};

/// The class `sycl::event`.
#[derive(Debug)]
pub enum Event {}

/// A SYCL event (`DPCTLSyclEventRef`).
pub type EventRef = Reference<Event>;

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
