//! Checked access to the arguments of entry points.

use std::ffi::{c_char, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

use level_zero_sys as sys;
use sys::{Head, Structure};

use crate::abi::result::{ZeResult, ensure};

/// Borrows an input array; null with a length is `code`.
///
/// # Safety
/// A pointer that is neither null nor misaligned must refer to `length` readable values.
pub unsafe fn input_array<'a, T>(
    pointer: *const T,
    length: u32,
    code: sys::ze_result_t,
) -> ZeResult<&'a [T]> {
    if length == 0 {
        return Ok(&[]);
    }
    ensure(!pointer.is_null(), code)?;
    check_pointer(pointer)?;
    // SAFETY: not null and aligned; the caller vouches for the length.
    Ok(unsafe { slice::from_raw_parts(pointer, length as usize) })
}

/// `Ok` for a pointer that is neither null nor misaligned.
pub fn check_pointer<T>(pointer: *const T) -> ZeResult {
    ensure(
        !pointer.is_null(),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
    )?;
    ensure(pointer.is_aligned(), sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

/// `Ok` when `flags` has no bit that `known` lacks, else `ZE_RESULT_ERROR_INVALID_ENUMERATION`.
pub fn check_flags(flags: u32, known: u32) -> ZeResult {
    ensure(
        flags & !known == 0,
        sys::ZE_RESULT_ERROR_INVALID_ENUMERATION,
    )
}

/// A structure of a chain, of a type that its head tells. One of an output structure may be written.
pub struct Link<'a, const IS_OUTPUT: bool = false> {
    head: NonNull<Head>,
    chain: PhantomData<&'a mut Head>,
}

impl<'a, const IS_OUTPUT: bool> Link<'a, IS_OUTPUT> {
    /// Which structure it is.
    pub fn stype(&self) -> sys::ze_structure_type_t {
        // SAFETY: the caller of `chain` vouches for the head.
        unsafe { (*self.head.as_ptr()).stype }
    }

    /// The structure, to be read, if it is a `T`.
    pub fn input<T: Structure>(&self) -> Option<&'a T> {
        // SAFETY: the stype tells the structure, for which the caller of `chain` vouches.
        self.is::<T>().then(|| unsafe { self.head.cast().as_ref() })
    }

    fn is<T: Structure>(&self) -> bool {
        T::TYPES.contains(&self.stype())
    }
}

impl<'a> Link<'a, true> {
    /// The structure, to be written, if it is a `T`.
    pub fn output<T: Structure>(self) -> Option<&'a mut T> {
        // SAFETY: the stype tells the structure, for which the caller of `chain` vouches; each link is returned once.
        self.is::<T>().then(|| unsafe { self.head.cast().as_mut() })
    }
}

/// The structures chained behind `next`.
///
/// # Safety
/// Each link must be null or point to the structure that its `stype` names, which is used through the chain only.
pub unsafe fn chain<'a, const IS_OUTPUT: bool>(
    next: *const c_void,
) -> impl Iterator<Item = Link<'a, IS_OUTPUT>> {
    let mut next = next.cast_mut().cast::<Head>();
    std::iter::from_fn(move || {
        let head = NonNull::new(next).filter(|head| head.is_aligned())?;
        // SAFETY: the caller vouches for each link.
        next = unsafe { (*head.as_ptr()).next }.cast();
        Some(Link {
            head,
            chain: PhantomData,
        })
    })
}

/// `text` as a C string in an array, cut if it is too long.
pub fn text<const LENGTH: usize>(text: &str) -> [c_char; LENGTH] {
    let mut array = [0; LENGTH];
    let room = LENGTH.saturating_sub(1);
    for (place, byte) in array.iter_mut().take(room).zip(text.bytes()) {
        *place = byte as c_char;
    }
    array
}
