//! dpctl's Python types, and its Python objects for SYCL references.

mod capsule;
mod classes;
mod queue;
mod selector;

pub(crate) use capsule::{RawReference, SyclCapsule, new as new_capsule};
pub(crate) use classes::{Dpctl, address, device_reference, is_memory, is_of, queue_reference};
pub(crate) use queue::SyclQueue;
pub(crate) use selector::{show_level_zero, warn_of_selector};
