//! The classes of SYCL objects, with dpctl's functions for each.

use std::ffi::CStr;

use super::library::Functions;
use super::reference::sealed::{self, Calls, Comparison};
use super::reference::{Capsule, Class, Comparable, Reference};

/// The class `sycl::context`.
#[derive(Debug)]
pub enum Context {}

/// A SYCL context (`DPCTLSyclContextRef`).
pub type ContextRef = Reference<Context>;

impl Class for Context {
    const NAME: &'static str = "SYCL context";
}

impl Capsule for Context {
    const NAME: &'static CStr = c"SyclContextRef";
    const USED_NAME: &'static CStr = c"used_SyclContextRef";
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

/// The class `sycl::device`.
#[derive(Debug)]
pub enum Device {}

/// A SYCL device (`DPCTLSyclDeviceRef`). dpctl has no capsules for devices: `SyclDevice.addressof_ref()` returns the address
/// of the reference.
pub type DeviceRef = Reference<Device>;

impl Class for Device {
    const NAME: &'static str = "SYCL device";
}

impl Comparable for Device {}

impl sealed::Class for Device {
    fn calls(functions: &Functions) -> Calls {
        Calls {
            copy_name: "DPCTLDevice_Copy",
            copy: functions.device_copy,
            delete: functions.device_delete,
            backend: functions.device_backend,
        }
    }
}

impl sealed::Comparable for Device {
    fn comparison(functions: &Functions) -> Comparison {
        Comparison {
            are_eq: functions.device_are_eq,
            hash: functions.device_hash,
        }
    }
}

/// The class `sycl::queue`.
#[derive(Debug)]
pub enum Queue {}

/// A SYCL queue (`DPCTLSyclQueueRef`).
pub type QueueRef = Reference<Queue>;

impl Class for Queue {
    const NAME: &'static str = "SYCL queue";
}

impl Capsule for Queue {
    const NAME: &'static CStr = c"SyclQueueRef";
    const USED_NAME: &'static CStr = c"used_SyclQueueRef";
}

impl Comparable for Queue {}

impl sealed::Class for Queue {
    fn calls(functions: &Functions) -> Calls {
        Calls {
            copy_name: "DPCTLQueue_Copy",
            copy: functions.queue_copy,
            delete: functions.queue_delete,
            backend: functions.queue_backend,
        }
    }
}

impl sealed::Comparable for Queue {
    fn comparison(functions: &Functions) -> Comparison {
        Comparison {
            are_eq: functions.queue_are_eq,
            hash: functions.queue_hash,
        }
    }
}

/// The class `sycl::event`.
#[derive(Debug)]
pub enum Event {}

/// A SYCL event (`DPCTLSyclEventRef`).
pub type EventRef = Reference<Event>;

impl Class for Event {
    const NAME: &'static str = "SYCL event";
}

impl Capsule for Event {
    const NAME: &'static CStr = c"SyclEventRef";
    const USED_NAME: &'static CStr = c"used_SyclEventRef";
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
