//! What the body of an entry point takes in place of the raw arguments, which are checked on the way, from the first to the last.

use std::ffi::{CStr, c_char, c_void};
use std::ops::{Deref, DerefMut};

use level_zero_sys as sys;
use sys::{Head, Structure};

use super::arguments::{Link, chain, input, input_structure, output, output_structure};
use super::result::{ZeResult, ensure};
use super::strictness::is_strict;

/// An argument as the body of an entry point takes it, from the raw one. A raw one may also be taken as it is.
pub trait Argument<Raw>: Sized {
    /// Checks the raw argument.
    ///
    /// # Errors
    /// The result code of an argument that is none.
    ///
    /// # Safety
    /// A pointer that is neither null nor misaligned is valid during the call, as the specification demands, and so is each
    /// structure chained to what it points to.
    unsafe fn check(raw: Raw) -> ZeResult<Self>;
}

/// Checks one raw argument.
///
/// # Errors
/// As for [`Argument::check`].
///
/// # Safety
/// As for [`Argument::check`].
pub unsafe fn check<Raw, T: Argument<Raw>>(raw: Raw) -> ZeResult<T> {
    // SAFETY: the caller vouches for the argument.
    unsafe { T::check(raw) }
}

impl<T> Argument<T> for T {
    unsafe fn check(raw: T) -> ZeResult<Self> {
        Ok(raw)
    }
}

/// An input structure of a caller, who vouches for its chain and for all that it refers to.
pub struct In<'a, T>(&'a T);

/// An output structure of a caller, likewise.
pub struct Out<'a, T>(&'a mut T);

impl<T> Deref for In<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

impl<T> Deref for Out<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

impl<T> DerefMut for Out<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0
    }
}

impl<'a, T: Structure> In<'a, T> {
    /// The structures behind it.
    pub fn chain(&self) -> impl Iterator<Item = Link<'a>> + use<'a, T> {
        // SAFETY: every Structure begins with a Head, and who made the argument vouched for the chain.
        unsafe { chain((*std::ptr::from_ref(self.0).cast::<Head>()).next) }
    }

    /// The `U` behind it.
    pub fn extension<U: Structure>(&self) -> Option<&'a U> {
        self.chain().find_map(|link| link.input())
    }
}

impl<T: Structure> Out<'_, T> {
    /// The `U` behind it, to be written.
    pub fn extension<U: Structure>(&mut self) -> Option<&mut U> {
        // SAFETY: as for an input; while the result lives, the structure is borrowed, so that there are no others.
        let mut chain = unsafe { chain((*std::ptr::from_mut(self.0).cast::<Head>()).next) };
        chain.find_map(Link::output)
    }
}

impl<T: Structure> Argument<*const T> for In<'_, T> {
    unsafe fn check(raw: *const T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        unsafe { input_structure(raw) }.map(Self)
    }
}

impl<T: Structure> Argument<*mut T> for In<'_, T> {
    unsafe fn check(raw: *mut T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        unsafe { input_structure(raw.cast_const()) }.map(Self)
    }
}

impl<T: Structure> Argument<*mut T> for Out<'_, T> {
    unsafe fn check(raw: *mut T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        unsafe { output_structure(raw) }.map(Self)
    }
}

impl<T: Structure> Argument<*mut T> for Option<In<'_, T>> {
    unsafe fn check(raw: *mut T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        (!raw.is_null()).then(|| unsafe { check(raw) }).transpose()
    }
}

/// A value that is read.
impl<T> Argument<*const T> for &T {
    unsafe fn check(raw: *const T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        unsafe { input(raw) }
    }
}

/// A place for a value.
impl<T> Argument<*mut T> for &mut T {
    unsafe fn check(raw: *mut T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        unsafe { output(raw) }
    }
}

/// A place that may be null.
impl<T> Argument<*mut T> for Option<&mut T> {
    unsafe fn check(raw: *mut T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        (!raw.is_null()).then(|| unsafe { output(raw) }).transpose()
    }
}

/// A value that may be null.
impl<T> Argument<*const T> for Option<&T> {
    unsafe fn check(raw: *const T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        (!raw.is_null()).then(|| unsafe { input(raw) }).transpose()
    }
}

/// A text.
impl Argument<*const c_char> for &CStr {
    unsafe fn check(raw: *const c_char) -> ZeResult<Self> {
        ensure(!raw.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
        // SAFETY: the caller vouches for a text that ends in a null.
        Ok(unsafe { CStr::from_ptr(raw) })
    }
}

/// Structures that extend a call, chained to each other.
pub struct Chain(*const c_void);

impl Chain {
    /// They.
    pub fn links<'a>(&self) -> impl Iterator<Item = Link<'a>> + use<'a> {
        // SAFETY: who made the argument vouched for the chain.
        unsafe { chain(self.0) }
    }
}

impl Argument<*const c_void> for Chain {
    unsafe fn check(raw: *const c_void) -> ZeResult<Self> {
        Ok(Self(raw))
    }
}

impl Argument<*mut c_void> for Chain {
    unsafe fn check(raw: *mut c_void) -> ZeResult<Self> {
        Ok(Self(raw))
    }
}

/// An address to look up. Intel's driver looks up null as well, which is no memory, and Intel MPI asks for it.
#[derive(Clone, Copy)]
pub struct Address(pub usize);

impl<T> Argument<*const T> for Address {
    unsafe fn check(raw: *const T) -> ZeResult<Self> {
        ensure(
            !raw.is_null() || !is_strict(),
            sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
        )?;
        Ok(Self(raw as usize))
    }
}

impl<T> Argument<*mut T> for Address {
    unsafe fn check(raw: *mut T) -> ZeResult<Self> {
        // SAFETY: the address is not used as a pointer.
        unsafe { Self::check(raw.cast_const()) }
    }
}
