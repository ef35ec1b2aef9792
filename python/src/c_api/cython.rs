//! The functions that `dpctl.memory` exports for Cython, with the same names and signatures, over zeusm's memory objects.
//!
//! Cython finds an exported function in `__pyx_capi__` of its module: a capsule whose name is the function's C signature.
//!
//! Source: `dpctl/memory/_memory.pxd` of dpctl's wheel.

use std::ffi::{CStr, c_void};
use std::ptr;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::functions::{call, memory_of};
use crate::array::adopt;
use crate::dpctl::{self, Dpctl};
use crate::errors::OrRaise;
use crate::memory::object;
use crate::resolve::ResolvedSyclObject;
use zeusm::sycl::QueueRef;

/// The functions, by name, with their signatures.
pub(super) fn capsules(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let functions: [(&str, &CStr, *mut c_void); 6] = [
        (
            "Memory_GetUsmPointer",
            c"DPCTLSyclUSMRef (struct Py_MemoryObject *)",
            usm_pointer as *mut c_void,
        ),
        (
            "Memory_GetOpaquePointer",
            c"void *(struct Py_MemoryObject *)",
            opaque_pointer as *mut c_void,
        ),
        (
            "Memory_GetContextRef",
            c"DPCTLSyclContextRef (struct Py_MemoryObject *)",
            context_reference as *mut c_void,
        ),
        (
            "Memory_GetQueueRef",
            c"DPCTLSyclQueueRef (struct Py_MemoryObject *)",
            queue_reference as *mut c_void,
        ),
        (
            "Memory_GetNumBytes",
            c"size_t (struct Py_MemoryObject *)",
            byte_count as *mut c_void,
        ),
        (
            "Memory_Make",
            c"PyObject *(DPCTLSyclUSMRef, size_t, DPCTLSyclQueueRef, PyObject *)",
            make as *mut c_void,
        ),
    ];
    let capsules = PyDict::new(py);
    for (name, signature, function) in functions {
        // SAFETY: the interpreter is attached; the function and the signature are static.
        let capsule = unsafe {
            let capsule = ffi::PyCapsule_New(function, signature.as_ptr(), None);
            Bound::from_owned_ptr_or_err(py, capsule)
        }?;
        capsules.set_item(name, capsule)?;
    }
    Ok(capsules)
}

/// # Safety
/// As for [`call`].
unsafe extern "C" fn usm_pointer(object: *mut ffi::PyObject) -> *mut c_void {
    let pointer = |object: &Bound<'_, PyAny>| {
        let memory = memory_of(object)?.get();
        let _pin = memory.pins.pin()?;
        memory.export_state.mark_exported();
        Ok(ptr::with_exposed_provenance_mut(
            memory.for_export(object.py())?,
        ))
    };
    // SAFETY: the caller guarantees the validity of the object.
    unsafe { call(object, ptr::null_mut(), pointer) }
}

/// Returns null, which means that no `std::shared_ptr` of dpctl's owns the memory. The memory object owns it.
///
/// # Safety
/// None needed; unsafe to have the type of the other functions.
unsafe extern "C" fn opaque_pointer(_object: *mut ffi::PyObject) -> *mut c_void {
    ptr::null_mut()
}

/// The `dpctl.SyclQueue` of a memory object, which lives as long as that.
fn queue_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let binding = &memory_of(object)?.get().binding;
    let queue = binding.queue_or_cached(object.py())?;
    Ok(queue.object().bind(object.py()).clone())
}

/// The reference belongs to the context of the memory's `dpctl.SyclQueue`.
///
/// # Safety
/// As for [`call`].
unsafe extern "C" fn context_reference(object: *mut ffi::PyObject) -> *mut c_void {
    let context = |object: &Bound<'_, PyAny>| {
        let context = queue_of(object)?.getattr("sycl_context")?;
        dpctl::address(&context, &Dpctl::get(object.py())?.context)
    };
    // SAFETY: the caller guarantees the validity of the object.
    unsafe { call(object, ptr::null_mut(), context) }
}

/// The reference belongs to the memory's `dpctl.SyclQueue`.
///
/// # Safety
/// As for [`call`].
unsafe extern "C" fn queue_reference(object: *mut ffi::PyObject) -> *mut c_void {
    let queue = |object: &Bound<'_, PyAny>| {
        dpctl::address(&queue_of(object)?, &Dpctl::get(object.py())?.queue)
    };
    // SAFETY: the caller guarantees the validity of the object.
    unsafe { call(object, ptr::null_mut(), queue) }
}

/// # Safety
/// As for [`call`].
unsafe extern "C" fn byte_count(object: *mut ffi::PyObject) -> usize {
    // SAFETY: the caller guarantees the validity of the object.
    unsafe { call(object, 0, |object| Ok(memory_of(object)?.get().nbytes)) }
}

/// A memory object for USM that `owner` keeps alive, on the given queue.
///
/// # Safety
/// As for [`call`], of `owner`; `queue` must be a valid `DPCTLSyclQueueRef`.
unsafe extern "C" fn make(
    pointer: *mut c_void,
    nbytes: usize,
    queue: *mut c_void,
    owner: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let made = |owner: &Bound<'_, PyAny>| {
        if queue.is_null() {
            return Err(PyValueError::new_err("the queue reference is NULL"));
        }
        let py = owner.py();
        // SAFETY: the caller guarantees the validity of the reference.
        let queue = unsafe { QueueRef::copy_from_raw(queue) }.or_raise()?;
        let resolved = ResolvedSyclObject::of_queue_reference(py, &queue)?;
        let memory = adopt::from_pointer(resolved, pointer.addr(), nbytes, owner)?;
        Ok(object(py, memory)?.into_ptr())
    };
    // SAFETY: the caller guarantees the validity of the owner.
    unsafe { call(owner, ptr::null_mut(), made) }
}
