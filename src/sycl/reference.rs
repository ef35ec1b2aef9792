//! Owned references to SYCL objects.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use super::library::{Functions, Library, MayThrow, Native, RawRef};
use super::{Backend, Error};

/// A class of SYCL objects. The trait is sealed.
pub trait Class: sealed::Class + 'static {
    /// The name of the class in messages.
    const NAME: &'static str;
}

/// A class with Python capsules.
///
/// A capsule has a reference, which its destructor deletes under either name. A consumer copies the reference and renames the
/// capsule, so each capsule can be consumed once.
pub trait Capsule: Class {
    /// The name of an unused capsule.
    const NAME: &'static CStr;
    /// The name of a capsule whose reference a consumer has copied.
    const USED_NAME: &'static CStr;
}

pub(super) mod sealed {
    use std::ffi::c_uint;

    use super::{Functions, RawRef};

    type AreEq = unsafe extern "C" fn(RawRef, RawRef) -> bool;

    /// dpctl's functions for a class.
    pub struct Calls {
        pub(in crate::sycl) copy_name: &'static str,
        pub(in crate::sycl) copy: unsafe extern "C" fn(RawRef) -> RawRef,
        pub(in crate::sycl) delete: unsafe extern "C" fn(RawRef),
        pub(in crate::sycl) backend: unsafe extern "C-unwind" fn(RawRef) -> c_uint,
        /// Whether two references are to one object, if dpctl compares objects of the class.
        pub(in crate::sycl) are_eq: Option<AreEq>,
    }

    pub trait Class {
        fn calls(functions: &Functions) -> Calls;
    }
}

/// An owned reference to a SYCL object of class `C`. Clones share it; the drop of the last one deletes it.
///
/// SYCL's objects are reference-counted themselves ("Common reference semantics"), so the context, device or queue lives as
/// long as the reference.
pub struct Reference<C: Class>(Arc<Owned<C>>);

struct Owned<C: Class> {
    raw: NonNull<c_void>,
    library: &'static Library,
    class: PhantomData<C>,
}

// SAFETY: SYCL 2020 makes the member functions of its classes thread-safe, and dpctl passes references between threads; no
// reference is bound to a thread.
unsafe impl<C: Class> Send for Owned<C> {}
// SAFETY: as above; the object is never modified, only copied, queried and deleted.
unsafe impl<C: Class> Sync for Owned<C> {}

impl<C: Class> Reference<C> {
    /// Copies a foreign reference, whose owner keeps it.
    ///
    /// # Errors
    /// [`Error::NoDpctl`], [`Error::NullReference`], [`Error::Failed`].
    ///
    /// # Safety
    /// `raw` must be null or point to a SYCL object of class `C` of the SYCL runtime that [`Library::get`] finds.
    pub unsafe fn copy_from_raw(raw: RawRef) -> Result<Self, Error> {
        let library = Library::get()?;
        if raw.is_null() {
            return Err(Error::NullReference(C::NAME));
        }
        let calls = C::calls(&library.functions);
        // SAFETY: `raw` is an object of this class; dpctl's function catches exceptions.
        let copy = unsafe { (calls.copy)(raw) };
        // SAFETY: the copy has no other owner.
        unsafe { Self::own(library, copy, calls.copy_name) }
    }

    /// Takes the ownership of a reference that a function of `library` returned.
    ///
    /// # Errors
    /// [`Error::Failed`] for null, which functions of dpctl return after an exception.
    ///
    /// # Safety
    /// `raw` must be null or a reference of class `C` without another owner.
    pub(super) unsafe fn own(
        library: &'static Library,
        raw: RawRef,
        function: &'static str,
    ) -> Result<Self, Error> {
        let raw = NonNull::new(raw).ok_or(Error::Failed(function))?;
        let class = PhantomData;
        Ok(Self(Arc::new(Owned {
            raw,
            library,
            class,
        })))
    }

    /// The reference itself, valid as long as `self` lives.
    #[must_use]
    pub fn as_raw(&self) -> RawRef {
        self.0.raw.as_ptr()
    }

    /// A pointer that owns the reference until it is passed to [`release`](Self::release): the context of a capsule, for its
    /// destructor.
    #[must_use]
    pub fn into_capsule_context(self) -> *const c_void {
        Arc::into_raw(self.0).cast()
    }

    /// Drops the reference of a capsule's context.
    ///
    /// # Safety
    /// `context` must come from [`into_capsule_context`](Self::into_capsule_context) of this class, and be released once.
    pub unsafe fn release(context: *const c_void) {
        // SAFETY: the caller guarantees that the pointer comes from `into_capsule_context`.
        drop(unsafe { Arc::from_raw(context.cast::<Owned<C>>()) });
    }

    /// The backend of the object.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let calls = C::calls(self.functions());
        // SAFETY: the reference is alive; the object stores its backend, so the call does not throw.
        Backend::from_dpctl(unsafe { (calls.backend)(self.as_raw()) })
    }

    /// Whether it refers to the same SYCL object as a foreign reference.
    ///
    /// # Safety
    /// `raw` must point to a SYCL object of class `C` of the SYCL runtime that [`Library::get`] finds.
    #[must_use]
    pub unsafe fn is_same(&self, raw: RawRef) -> bool {
        match C::calls(self.functions()).are_eq {
            // SAFETY: both references are alive; SYCL's comparison does not throw.
            Some(are_eq) => unsafe { are_eq(self.as_raw(), raw) },
            None => self.as_raw() == raw,
        }
    }

    /// Returns an error for objects of other backends than Level Zero.
    pub(super) fn require_level_zero(&self) -> Result<(), Error> {
        match self.backend() {
            Backend::LevelZero => Ok(()),
            found => Err(Error::Backend {
                object: C::NAME,
                found,
                needed: Backend::LevelZero,
            }),
        }
    }

    /// The object's native Level Zero handle.
    ///
    /// # Errors
    /// [`Error::Backend`] for an object of another backend, [`Error::Failed`] when there is no handle,
    /// [`Error::Unavailable`], [`Error::Thrown`].
    pub(super) fn native_handle<T>(&self, native: &MayThrow<Native>) -> Result<*mut T, Error> {
        self.require_level_zero()?;
        // SAFETY: the reference is a pointer to the object, which is the `this` of the method.
        let handle = self
            .library()
            .call(native, |native| unsafe { native(self.as_raw()) })?;
        match handle {
            0 => Err(Error::Failed(native.name)),
            handle => Ok(std::ptr::with_exposed_provenance_mut(handle)),
        }
    }

    /// The library that made the reference.
    pub(super) fn library(&self) -> &'static Library {
        self.0.library
    }

    pub(super) fn functions(&self) -> &'static Functions {
        &self.0.library.functions
    }
}

impl<C: Capsule> Reference<C> {
    /// The name of an unused Python capsule with such a reference.
    pub const CAPSULE: &'static CStr = <C as Capsule>::NAME;
    /// The name of a used capsule.
    pub const USED_CAPSULE: &'static CStr = C::USED_NAME;
}

impl<C: Class> Drop for Owned<C> {
    fn drop(&mut self) {
        // SAFETY: the reference is owned, and deleted once.
        unsafe { (C::calls(&self.library.functions).delete)(self.raw.as_ptr()) };
    }
}

impl<C: Class> Clone for Reference<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Equal when both refer to the same SYCL object. References to events are equal when they are clones.
impl<C: Class> PartialEq for Reference<C> {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: the other reference is alive.
        Arc::ptr_eq(&self.0, &other.0) || unsafe { self.is_same(other.as_raw()) }
    }
}

impl<C: Class> Eq for Reference<C> {}

impl<C: Class> fmt::Debug for Reference<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} {:p} ({})",
            C::NAME,
            self.as_raw(),
            self.backend()
        )
    }
}
