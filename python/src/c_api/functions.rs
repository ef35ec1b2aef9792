//! zeusm's C API: a structure of functions in the capsule `zeusm._C_API`, declared for C in `include/zeusm.h`.

use std::ffi::{CStr, c_int, c_void};
use std::mem;
use std::ptr::{self, NonNull};

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::array::adopt;
use crate::interpreter::attach;
use crate::memory::{PyMemory, object};
use crate::parse;
use crate::pool::{PyMemoryPool, held};
use crate::resolve::{ContextDevice, ResolvedSyclObject, default_binding};
use crate::shown::class_name;
use zeusm::pool::Pool;
use zeusm::sycl::ContextRef;
use zeusm::usm::LevelZeroProvider;

/// The capsule's name: the module and attribute from which `PyCapsule_Import` gets it.
const CAPSULE: &CStr = c"zeusm._C_API";

/// `zeusm_memory`.
#[repr(C)]
struct Memory {
    pointer: *mut c_void,
    nbytes: usize,
    kind: c_int,
    read_only: c_int,
    ze_context: *mut c_void,
    ze_device: *mut c_void,
    sycl_context: *mut c_void,
}

/// `zeusm_api`.
#[repr(C)]
struct Api {
    major: u16,
    minor: u16,
    size: u32,
    check: unsafe extern "C" fn(*mut ffi::PyObject) -> c_int,
    describe: unsafe extern "C" fn(*mut ffi::PyObject, *mut Memory) -> c_int,
    from_pointer: unsafe extern "C" fn(
        *mut c_void,
        usize,
        *mut c_void,
        *mut ffi::PyObject,
    ) -> *mut ffi::PyObject,
    pool: unsafe extern "C" fn(*mut ffi::PyObject) -> *const CPool,
    allocate: unsafe extern "C" fn(*const CPool, usize, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void) -> c_int,
}

/// `zeusm_pool`.
type CPool = Pool<LevelZeroProvider>;

static API: Api = Api {
    major: 1,
    minor: 1,
    size: mem::size_of::<Api>() as u32,
    check,
    describe,
    from_pointer,
    pool,
    allocate,
    free,
};

/// The capsule.
pub(super) fn capsule(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    // SAFETY: the structure is static.
    unsafe { PyCapsule::new_with_pointer(py, NonNull::from(&API).cast(), CAPSULE) }
}

/// Calls `function` with the object; after an error the exception is set and the result is `failed`. The object of a call that
/// has failed is null, and its exception is kept.
///
/// # Safety
/// The interpreter must be attached, and `object` a valid object or null.
pub(super) unsafe fn call<T>(
    object: *mut ffi::PyObject,
    failed: T,
    function: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
) -> T {
    attach(|py| {
        // SAFETY: the caller guarantees the validity of the object.
        let object = unsafe { Bound::from_borrowed_ptr_or_opt(py, object) };
        let none = || PyErr::take(py).unwrap_or_else(|| PyTypeError::new_err("NULL is no object"));
        let done = object.ok_or_else(none).and_then(|it| function(&it));
        done.unwrap_or_else(|error| {
            error.restore(py);
            failed
        })
    })
}

/// # Safety
/// As for [`call`].
unsafe extern "C" fn check(object: *mut ffi::PyObject) -> c_int {
    let check = |object: &Bound<'_, PyAny>| Ok(object.is_instance_of::<PyMemory>().into());
    match object.is_null() {
        true => 0,
        // SAFETY: the caller guarantees the validity of the object.
        false => unsafe { call(object, 0, check) },
    }
}

/// # Safety
/// As for [`call`]; `memory` must be a structure to fill in.
unsafe extern "C" fn describe(object: *mut ffi::PyObject, memory: *mut Memory) -> c_int {
    // SAFETY: the caller guarantees the validity of the object and of the structure.
    unsafe {
        call(object, -1, |object| {
            memory.write(described(object)?);
            Ok(0)
        })
    }
}

/// The object as a memory object.
pub(super) fn memory_of<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
) -> PyResult<&'a Bound<'py, PyMemory>> {
    object.cast::<PyMemory>().map_err(|_| {
        PyTypeError::new_err(format!(
            "a USM memory object of zeusm is needed, not {}",
            class_name(object)
        ))
    })
}

fn described(object: &Bound<'_, PyAny>) -> PyResult<Memory> {
    let memory = memory_of(object)?.get();
    let _pin = memory.pins.pin()?;
    let address = memory.for_export(object.py())?;
    Ok(Memory {
        pointer: match memory.nbytes {
            0 => ptr::null_mut(),
            _ => ptr::with_exposed_provenance_mut(address),
        },
        nbytes: memory.nbytes,
        kind: parse::kind_number(memory.kind),
        read_only: c_int::from(memory.terms.is_read_only()),
        ze_context: memory.context_device().context().handle().cast(),
        ze_device: memory.context_device().device().handle().cast(),
        sycl_context: memory
            .context_device()
            .sycl()
            .map_or(ptr::null_mut(), ContextRef::as_raw),
    })
}

/// Refuses a Level Zero context in a SYCL context's place: that of the owner, or the default one.
fn refuse_level_zeros(
    py: Python<'_>,
    sycl_context: *mut c_void,
    owner: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let is_of = |of: &ContextDevice| ptr::addr_eq(of.context().handle(), sycl_context);
    let is_owners = memory_of(owner).is_ok_and(|owner| is_of(owner.get().context_device()));
    if is_owners || default_binding(py).is_ok_and(|binding| is_of(binding.context_device())) {
        return Err(PyValueError::new_err(
            "sycl_context is a Level Zero context: a DPCTLSyclContextRef is needed, as in zeusm_memory.sycl_context",
        ));
    }
    Ok(())
}

/// # Safety
/// As for [`call`], of `owner`, which may be null; `sycl_context` must be null or a valid `DPCTLSyclContextRef`.
unsafe extern "C" fn from_pointer(
    pointer: *mut c_void,
    nbytes: usize,
    sycl_context: *mut c_void,
    owner: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let made = |owner: &Bound<'_, PyAny>| {
        let py = owner.py();
        refuse_level_zeros(py, sycl_context, owner)?;
        let context = if sycl_context.is_null() {
            default_binding(py)?.context_device().sycl()?.clone()
        } else {
            // SAFETY: the caller guarantees the validity of the reference.
            unsafe { ContextRef::copy_from_raw(sycl_context) }
                .map_err(|error| PyRuntimeError::new_err(format!("{error}")))?
        };
        let resolved = ResolvedSyclObject::of_context(context);
        let memory = adopt::from_pointer(resolved, pointer.addr(), nbytes, owner)?;
        Ok(object(py, memory)?.into_ptr())
    };
    let no_owner = |_: &Bound<'_, PyAny>| {
        Err(PyValueError::new_err(
            "owner is NULL: something has to keep the memory alive",
        ))
    };
    // SAFETY: None is a valid object, and the caller guarantees the validity of others.
    unsafe {
        match owner.is_null() {
            true => call(ffi::Py_None(), ptr::null_mut(), no_owner),
            false => call(owner, ptr::null_mut(), made),
        }
    }
}

/// # Safety
/// As for [`call`].
unsafe extern "C" fn pool(object: *mut ffi::PyObject) -> *const CPool {
    let pool = |object: &Bound<'_, PyAny>| match object.cast::<PyMemoryPool>() {
        Ok(pool) => Ok(ptr::from_ref(&pool.get().pool)),
        Err(_) => Err(PyTypeError::new_err(format!(
            "a zeusm.memory.MemoryPool is needed, not {}",
            class_name(object)
        ))),
    };
    // SAFETY: the caller guarantees the validity of the object.
    unsafe { call(object, ptr::null(), pool) }
}

/// # Safety
/// `pool` must be a pool whose object is alive, or null.
unsafe extern "C" fn allocate(pool: *const CPool, nbytes: usize, alignment: usize) -> *mut c_void {
    // SAFETY: the caller guarantees the validity of the pool.
    let allocated = unsafe { pool.as_ref() }.map(|pool| held::allocate(pool, nbytes, alignment));
    allocated.and_then(Result::ok).unwrap_or(ptr::null_mut())
}

/// # Safety
/// None needed: unknown pointers are refused; unsafe to have the type of the other functions.
unsafe extern "C" fn free(pointer: *mut c_void) -> c_int {
    match held::take(pointer) {
        Some(memory) => held::end(memory),
        None if pointer.is_null() => {}
        None => return -1,
    }
    0
}
