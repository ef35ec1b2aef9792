//! Typed `pNext` chains: only structures that the specification lists as extensions can be put into one.

use std::ffi::c_void;
use std::ptr;

use crate::bindings::*;

/// Implemented by the structures that may extend a `Base` through its `pNext`.
///
/// # Safety
/// The structure begins with `stype` and `pNext`, and the specification lists it as an extension of `Base`.
pub unsafe trait Extends<Base> {}

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
