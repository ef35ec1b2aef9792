//! Typed `pNext` chains: which structures are extensible, and which ones the specification lists as extensions.

use std::ffi::c_void;
use std::ptr;

use crate::bindings::{self, *};

/// The head that every extensible structure begins with.
#[repr(C)]
#[derive(Debug)]
pub struct Head {
    /// Which structure this is; system management has a type of its own for the number.
    pub stype: ze_structure_type_t,
    /// The next structure of the chain, or null.
    pub next: *mut c_void,
}

/// An extensible structure. The build script implements it for those of the headers.
///
/// # Safety
/// The type is `repr(C)` and begins with the fields of [`Head`].
pub unsafe trait Structure {
    /// The values of `stype` that name this structure.
    const TYPES: &'static [ze_structure_type_t];
}

include!(concat!(env!("OUT_DIR"), "/structures.rs"));

/// A structure that names its type, all of whose other fields are 0.
///
/// ```
/// use level_zero_sys as sys;
///
/// let description: sys::ze_context_desc_t = sys::structure();
/// assert_eq!(description.stype, sys::ZE_STRUCTURE_TYPE_CONTEXT_DESC);
/// ```
#[must_use]
pub fn structure<S: Structure + Default>() -> S {
    let mut new = S::default();
    if let Some(&stype) = S::TYPES.first() {
        // SAFETY: the structure begins with the fields of a head.
        unsafe { (*ptr::from_mut(&mut new).cast::<Head>()).stype = stype };
    }
    new
}

/// Implemented by the structures that may extend a `Base` through its `pNext`.
///
/// # Safety
/// The structure begins with `stype` and `pNext`, and the specification lists it as an extension of `Base`.
pub unsafe trait Extends<Base>: Structure {}

// SAFETY: Level Zero specification, `ze_relaxed_allocation_limits_exp_desc_t`.
unsafe impl Extends<ze_device_mem_alloc_desc_t> for ze_relaxed_allocation_limits_exp_desc_t {}
// SAFETY: as above.
unsafe impl Extends<ze_host_mem_alloc_desc_t> for ze_relaxed_allocation_limits_exp_desc_t {}
// SAFETY: Level Zero specification, `ze_external_memory_export_desc_t`.
unsafe impl Extends<ze_device_mem_alloc_desc_t> for ze_external_memory_export_desc_t {}

/// The `pNext` of a `Base` with at most one extension, which has to outlive the use of the pointer.
///
/// ```
/// use level_zero_sys as sys;
///
/// let limits = sys::ze_relaxed_allocation_limits_exp_desc_t::default();
/// let host = sys::ze_host_mem_alloc_desc_t {
///     pNext: sys::next::<sys::ze_host_mem_alloc_desc_t, _>(Some(&limits)),
///     ..Default::default()
/// };
/// assert!(!host.pNext.is_null());
/// ```
///
/// A structure that is no extension of the base does not compile:
///
/// ```compile_fail
/// use level_zero_sys as sys;
///
/// let limits = sys::ze_relaxed_allocation_limits_exp_desc_t::default();
/// sys::next::<sys::ze_context_desc_t, _>(Some(&limits));
/// ```
pub fn next<Base, E: Extends<Base>>(extension: Option<&E>) -> *const c_void {
    extension.map_or(ptr::null(), |extension| ptr::from_ref(extension).cast())
}
