//! OpenCL's objects: each begins with the address of the table by which OpenCL's loader calls this front.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use opencl_sys as cl;
use opencl_sys::cl_icd::_cl_icd_dispatch as Dispatch;
use opencl_sys::{cl_int, cl_uint};

/// How many functions the table has.
pub const FUNCTIONS: usize = size_of::<Dispatch>() / size_of::<*const ()>();

/// The addresses of the functions, as the loader's table has them.
#[repr(transparent)]
pub struct Table(pub [*const (); FUNCTIONS]);

// SAFETY: the addresses of functions may be used by any thread.
unsafe impl Send for Table {}
// SAFETY: likewise.
unsafe impl Sync for Table {}

/// An object; one that is made from another has its table.
#[repr(C)]
pub struct Object<T> {
    pub table: &'static Table,
    pub value: T,
}

impl<T> Object<T> {
    /// The handle of an object that lives as long as the process.
    pub fn handle(&'static self) -> *mut c_void {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// A new object's handle, which [`Self::release`] takes.
    pub fn hand_out(table: &'static Table, value: T) -> *mut c_void {
        let object = Arc::new(Self { table, value });
        Arc::into_raw(object).cast_mut().cast()
    }

    /// The object of a handle. None is null, as OpenCL's loader reads the address of the function from it.
    ///
    /// # Safety
    /// `handle` is an object of this kind, which lives as long as the result is used.
    pub unsafe fn of<'a>(handle: *mut c_void) -> &'a Self {
        // SAFETY: the caller vouches for the handle.
        unsafe { &*handle.cast::<Self>() }
    }

    /// A further reference to the object of a handle.
    ///
    /// # Safety
    /// `handle` is of an object of this kind that was [handed out](Self::hand_out) and lives.
    pub unsafe fn shared(handle: *mut c_void) -> Arc<Self> {
        let place = handle.cast::<Self>().cast_const();
        // SAFETY: the caller vouches for the handle.
        unsafe {
            Arc::increment_strong_count(place);
            Arc::from_raw(place)
        }
    }

    /// A further reference, which is the caller's: `clRetain*`.
    ///
    /// # Safety
    /// As for [`Self::shared`].
    pub unsafe extern "C" fn retain(handle: *mut c_void) -> cl_int {
        // SAFETY: the caller vouches for the handle.
        std::mem::forget(unsafe { Self::shared(handle) });
        cl::CL_SUCCESS
    }

    /// Gives a reference back: `clRelease*`.
    ///
    /// # Safety
    /// As for [`Self::shared`]; the reference is not used any more.
    pub unsafe extern "C" fn release(handle: *mut c_void) -> cl_int {
        // SAFETY: the caller vouches for the handle.
        drop(unsafe { Arc::from_raw(handle.cast::<Self>().cast_const()) });
        cl::CL_SUCCESS
    }
}

/// What an object is of.
pub trait Content: Sized {
    /// The value of a query; `None` for one that there is not. `place` is the caller's for it.
    ///
    /// # Safety
    /// `place` is null or valid, with all that it refers to.
    unsafe fn query(object: &Object<Self>, kind: cl_uint, place: *mut c_void) -> Option<Vec<u8>>;
}

impl<T: Content> Object<T> {
    /// Writes the value of a query: `clGet*Info`.
    ///
    /// # Safety
    /// `handle` is an object of this kind, `value` null or with room for `size` bytes, and `needed` null or valid.
    pub unsafe extern "C" fn info(
        handle: *mut c_void,
        kind: cl_uint,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        // SAFETY: the caller vouches for the pointers.
        unsafe {
            let found = T::query(Self::of(handle), kind, value);
            found.map_or(cl::CL_INVALID_VALUE, |it| answer(&it, size, value, needed))
        }
    }
}

/// Writes the value of a query.
///
/// # Safety
/// `value` is null or has room for `size` bytes; `needed` is null or valid.
pub unsafe fn answer(bytes: &[u8], size: usize, value: *mut c_void, needed: *mut usize) -> cl_int {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        if let Some(needed) = needed.as_mut() {
            *needed = bytes.len();
        }
        if value.is_null() {
            return cl::CL_SUCCESS;
        }
        if size < bytes.len() {
            return cl::CL_INVALID_VALUE;
        }
        ptr::copy_nonoverlapping(bytes.as_ptr(), value.cast(), bytes.len());
    }
    cl::CL_SUCCESS
}

/// A text as queries answer it, with the null at its end.
pub fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// A handle as queries answer it.
pub fn pointer(handle: *mut c_void) -> Vec<u8> {
    (handle as usize).to_ne_bytes().to_vec()
}
