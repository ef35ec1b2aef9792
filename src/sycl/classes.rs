//! The classes of SYCL objects, with dpctl's functions for each.

use super::library::Functions;
use super::reference::sealed::{self, Calls};
use super::reference::{Capsule, Class, Reference};

/// Declares a class with the type of its references, its name in messages, and dpctl's functions for it; that which
/// compares objects last.
macro_rules! class {
    ($class:ident, $(#[$note:meta])* $reference:ident, $name:literal,
        $copy_name:literal, $copy:ident, $delete:ident, $backend:ident $(, $are_eq:ident)?) => {
        #[doc = concat!("The class of a ", $name, ".")]
        #[derive(Debug)]
        pub enum $class {}

        $(#[$note])*
        pub type $reference = Reference<$class>;

        impl Class for $class {
            const NAME: &'static str = $name;
        }

        impl sealed::Class for $class {
            fn calls(functions: &Functions) -> Calls {
                Calls {
                    copy_name: $copy_name,
                    copy: functions.$copy,
                    delete: functions.$delete,
                    backend: functions.$backend,
                    are_eq: None$(.or(Some(functions.$are_eq)))?,
                }
            }
        }
    };
}

/// Declares the names of a class's capsules, unused and used.
macro_rules! capsule {
    ($class:ident, $name:literal, $used:literal) => {
        impl Capsule for $class {
            const NAME: &'static std::ffi::CStr = $name;
            const USED_NAME: &'static std::ffi::CStr = $used;
        }
    };
}

class! {
    Context,
    /// A SYCL context (`DPCTLSyclContextRef`).
    ContextRef, "SYCL context", "DPCTLContext_Copy", context_copy, context_delete, context_backend,
    context_are_eq
}
capsule!(Context, c"SyclContextRef", c"used_SyclContextRef");

class! {
    Device,
    /// A SYCL device (`DPCTLSyclDeviceRef`). dpctl has no capsules for devices: `SyclDevice.addressof_ref()` returns the
    /// address of the reference.
    DeviceRef, "SYCL device", "DPCTLDevice_Copy", device_copy, device_delete, device_backend,
    device_are_eq
}

class! {
    Queue,
    /// A SYCL queue (`DPCTLSyclQueueRef`).
    QueueRef, "SYCL queue", "DPCTLQueue_Copy", queue_copy, queue_delete, queue_backend,
    queue_are_eq
}
capsule!(Queue, c"SyclQueueRef", c"used_SyclQueueRef");

class! {
    Event,
    /// A SYCL event (`DPCTLSyclEventRef`).
    EventRef, "SYCL event", "DPCTLEvent_Copy", event_copy, event_delete, event_backend
}
capsule!(Event, c"SyclEventRef", c"used_SyclEventRef");
