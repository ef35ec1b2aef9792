//! What the body of an entry point takes in place of the raw arguments, which are checked on the way, from the first to the last.

use std::ffi::{CStr, c_char, c_void};
use std::ops::{Deref, DerefMut};
use std::slice;

use level_zero_sys as sys;
use sys::{Head, Structure};

use super::arguments::{Link, chain, check_pointer, input_array};
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

/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a wrong `stype` if the runtime is strict. The argument's position tells its type, so
/// Intel's driver does not read `stype` there, and there are programs that do not set it.
fn check_type<T: Structure>(structure: &T) -> ZeResult {
    // SAFETY: every Structure begins with a Head.
    let head = unsafe { &*std::ptr::from_ref(structure).cast::<Head>() };
    ensure(
        T::TYPES.contains(&head.stype) || !is_strict(),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
    )
}

impl<T: Structure> Argument<*const T> for In<'_, T> {
    unsafe fn check(raw: *const T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        let structure: &T = unsafe { check(raw) }?;
        check_type(structure)?;
        Ok(Self(structure))
    }
}

impl<T: Structure> Argument<*mut T> for In<'_, T> {
    unsafe fn check(raw: *mut T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        unsafe { check(raw.cast_const()) }
    }
}

impl<T: Structure> Argument<*mut T> for Out<'_, T> {
    unsafe fn check(raw: *mut T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        let structure: &mut T = unsafe { check(raw) }?;
        check_type(structure)?;
        Ok(Self(structure))
    }
}

/// A value that is read.
impl<T> Argument<*const T> for &T {
    unsafe fn check(raw: *const T) -> ZeResult<Self> {
        check_pointer(raw)?;
        // SAFETY: not null and aligned; the caller vouches for the rest.
        Ok(unsafe { &*raw })
    }
}

/// A place for a value, of a plain C type.
impl<T> Argument<*mut T> for &mut T {
    unsafe fn check(raw: *mut T) -> ZeResult<Self> {
        check_pointer(raw)?;
        // SAFETY: as for one that is read.
        Ok(unsafe { &mut *raw })
    }
}

/// What may be null, which is none.
impl<T, A: Argument<*mut T>> Argument<*mut T> for Option<A> {
    unsafe fn check(raw: *mut T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        (!raw.is_null()).then(|| unsafe { check(raw) }).transpose()
    }
}

/// Likewise.
impl<T, A: Argument<*const T>> Argument<*const T> for Option<A> {
    unsafe fn check(raw: *const T) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the pointer.
        (!raw.is_null()).then(|| unsafe { check(raw) }).transpose()
    }
}

/// An array, with its length before it.
impl<T> Argument<(u32, *mut T)> for &[T] {
    unsafe fn check((length, raw): (u32, *mut T)) -> ZeResult<Self> {
        let null = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
        ensure(!raw.is_null(), null)?;
        // SAFETY: the caller vouches for the array.
        unsafe { input_array(raw, length, null) }
    }
}

/// One that may be null.
impl<T> Argument<(u32, *mut T)> for Option<&[T]> {
    unsafe fn check((length, raw): (u32, *mut T)) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the array.
        let array = (!raw.is_null()).then(|| unsafe { check((length, raw)) });
        array.transpose()
    }
}

/// Room for as many values as the count before it says. A count of zero asks how many there are.
pub struct Room<'a, T> {
    count: &'a mut u32,
    places: *mut T,
}

impl<T> Argument<(*mut u32, *mut T)> for Room<'_, T> {
    unsafe fn check((count, places): (*mut u32, *mut T)) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the count.
        let count = unsafe { check(count) }?;
        Ok(Self { count, places })
    }
}

impl<'a, T: 'a> Room<'a, T> {
    /// The places to fill with the first of `total` values. Writes the total, where there is room for none or for more.
    pub fn places(self, total: usize) -> ZeResult<&'a mut [T]> {
        let total = u32::try_from(total).map_err(|_| sys::ZE_RESULT_ERROR_UNKNOWN)?;
        let room = *self.count;
        if room == 0 || room > total {
            *self.count = total;
        }
        if room == 0 || self.places.is_null() {
            return Ok(&mut []);
        }
        check_pointer(self.places)?;
        // SAFETY: who made the argument vouched for room for as many plain C values as the count says.
        Ok(unsafe { slice::from_raw_parts_mut(self.places, room.min(total) as usize) })
    }

    /// Writes the values.
    pub fn fill(self, all: &[T]) -> ZeResult
    where
        T: Copy,
    {
        let places = self.places(all.len())?;
        places.copy_from_slice(&all[..places.len()]);
        Ok(())
    }

    /// The structures to fill, whose heads the caller has filled.
    pub fn structures(self, total: usize) -> ZeResult<impl Iterator<Item = Out<'a, T>>>
    where
        T: Structure,
    {
        let places = self.places(total)?;
        places.iter().try_for_each(check_type)?;
        Ok(places.iter_mut().map(Out))
    }
}

/// Room for as many bytes as the size before it says. Null, and a size of zero, ask for the size.
pub struct Bytes<'a> {
    size: &'a mut usize,
    place: *mut u8,
}

impl<T> Argument<(*mut usize, *mut T)> for Bytes<'_> {
    unsafe fn check((size, place): (*mut usize, *mut T)) -> ZeResult<Self> {
        // SAFETY: the caller vouches for the size.
        let size = unsafe { check(size) }?;
        let place = place.cast();
        Ok(Self { size, place })
    }
}

impl Bytes<'_> {
    /// Writes the size, and the bytes if they are wanted.
    pub fn write(self, bytes: &[u8]) -> ZeResult {
        let room = std::mem::replace(self.size, bytes.len());
        if self.place.is_null() || room == 0 {
            return Ok(());
        }
        ensure(room >= bytes.len(), sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
        // SAFETY: there is room for the bytes; they do not overlap, as these are ours.
        unsafe {
            self.place
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };
        Ok(())
    }

    /// Writes a text, as a C string.
    pub fn write_text(self, text: &str) -> ZeResult {
        self.write(format!("{text}\0").as_bytes())
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

/// Structures that extend a call for which the runtime has no extension.
pub struct NoExtension;

impl Argument<*const c_void> for NoExtension {
    /// # Errors
    /// `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE` if there is one.
    unsafe fn check(raw: *const c_void) -> ZeResult<Self> {
        ensure(raw.is_null(), sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)?;
        Ok(Self)
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
