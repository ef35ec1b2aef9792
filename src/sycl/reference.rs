//! Owning a reference to a SYCL object.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use super::library::{Functions, Library, RawRef};
use super::{Backend, Error};

/// A class of SYCL objects. Only this module implements it, as dpctl's functions for a class belong together.
pub trait Class: sealed::Class + 'static {
    /// The class, as messages call it.
    const NAME: &'static str;
}

/// A class that dpctl puts into Python capsules.
///
/// A capsule carries a reference that its destructor lets go of, under either name. A consumer makes a copy of its own and
/// renames the capsule, so each capsule serves once.
pub trait Capsule: Class {
    /// The capsule's name when it is fresh.
    const NAME: &'static CStr;
    /// The capsule's name once a consumer has copied the reference.
    const USED_NAME: &'static CStr;
}

/// A class whose objects can be compared.
pub trait Comparable: Class + sealed::Comparable {}

pub(super) mod sealed {
    use std::ffi::c_uint;

    use super::{Functions, RawRef};

    /// dpctl's functions for a class.
    pub struct Calls {
        pub(in crate::sycl) copy_name: &'static str,
        pub(in crate::sycl) copy: unsafe extern "C" fn(RawRef) -> RawRef,
        pub(in crate::sycl) delete: unsafe extern "C" fn(RawRef),
        pub(in crate::sycl) backend: unsafe extern "C-unwind" fn(RawRef) -> c_uint,
    }

    /// Those that compare.
    pub struct Comparison {
        pub(in crate::sycl) are_eq: unsafe extern "C" fn(RawRef, RawRef) -> bool,
        pub(in crate::sycl) hash: unsafe extern "C" fn(RawRef) -> usize,
    }

    pub trait Class {
        fn calls(functions: &Functions) -> Calls;
    }

    pub trait Comparable {
        fn comparison(functions: &Functions) -> Comparison;
    }
}

/// An owned reference to a SYCL object of class `C`. Clones share it; the last one deletes it.
///
/// SYCL's objects are themselves counted references ("Common reference semantics"), so as long as one is held, the
/// context, device or queue that it means lives.
pub struct Reference<C: Class>(Arc<Owned<C>>);

struct Owned<C: Class> {
    raw: NonNull<c_void>,
    library: &'static Library,
    class: PhantomData<C>,
}

// SAFETY: SYCL 2020 has the member functions of its classes safe to call from several threads at once, and dpctl
// passes the same references between threads; no reference is bound to the thread that made it.
unsafe impl<C: Class> Send for Owned<C> {}
// SAFETY: as above; the object behind the reference is never changed, only copied, asked and deleted.
unsafe impl<C: Class> Sync for Owned<C> {}

impl<C: Class> Reference<C> {
    /// Copies a reference that somebody else owns, and goes on owning.
    ///
    /// # Errors
    /// [`Error::NoDpctl`], [`Error::NullReference`], [`Error::Failed`].
    ///
    /// # Safety
    /// `raw` must be null or point to a SYCL object of class `C` of the SYCL runtime that [`Library::get`] finds.
    pub unsafe fn copy_from_raw(raw: RawRef) -> Result<Self, Error> {
        let library = Library::get()?;
        if raw.is_null() {
            return Err(Error::NullReference { object: C::NAME });
        }
        let calls = C::calls(&library.functions);
        // SAFETY: `raw` is an object of this class; dpctl's function catches what copying may throw.
        let copy = unsafe { (calls.copy)(raw) };
        // SAFETY: the copy is ours.
        unsafe { Self::own(library, copy) }.ok_or(Error::Failed {
            function: calls.copy_name,
        })
    }

    /// Owns what a function of `library` has just given; `None` for null.
    ///
    /// # Safety
    /// `raw` must be null or a reference of class `C` that nobody else owns.
    pub(super) unsafe fn own(library: &'static Library, raw: RawRef) -> Option<Self> {
        NonNull::new(raw).map(|raw| {
            Self(Arc::new(Owned {
                raw,
                library,
                class: PhantomData,
            }))
        })
    }

    /// The reference itself, valid as long as `self` lives.
    #[must_use]
    pub fn as_raw(&self) -> RawRef {
        self.0.raw.as_ptr()
    }

    /// A pointer that keeps the reference until [`release`](Self::release) gets it: what a capsule has beside the
    /// reference, for its destructor.
    #[must_use]
    pub fn into_keeper(self) -> *const c_void {
        Arc::into_raw(self.0).cast()
    }

    /// Lets go of a reference.
    ///
    /// # Safety
    /// `keeper` must come from [`into_keeper`](Self::into_keeper) of this class, and be released once.
    pub unsafe fn release(keeper: *const c_void) {
        // SAFETY: the caller vouches for it.
        drop(unsafe { Arc::from_raw(keeper.cast::<Owned<C>>()) });
    }

    /// What the object is built on.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let calls = C::calls(self.functions());
        // SAFETY: the reference is alive; which backend an object has is kept in it, so nothing is thrown.
        Backend::from_dpctl(unsafe { (calls.backend)(self.as_raw()) })
    }

    /// Refuses objects that are not Level Zero's.
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

    /// The library that made the reference.
    #[must_use]
    pub fn library(&self) -> &'static Library {
        self.0.library
    }

    pub(super) fn functions(&self) -> &'static Functions {
        &self.0.library.functions
    }
}

impl<C: Comparable> Reference<C> {
    /// Whether it means the same SYCL object as a reference that somebody else owns.
    ///
    /// # Safety
    /// `raw` must point to a SYCL object of class `C` of the SYCL runtime that [`Library::get`] finds.
    #[must_use]
    pub unsafe fn is_same(&self, raw: RawRef) -> bool {
        // SAFETY: both references are alive; SYCL compares what they point to, which throws nothing.
        unsafe { (C::comparison(self.functions()).are_eq)(self.as_raw(), raw) }
    }
}

impl<C: Capsule> Reference<C> {
    /// The name of a fresh Python capsule with such a reference.
    pub const CAPSULE: &'static CStr = <C as Capsule>::NAME;
    /// The name of a capsule that has served.
    pub const USED_CAPSULE: &'static CStr = C::USED_NAME;
}

impl<C: Class> Drop for Owned<C> {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and this runs once.
        unsafe { (C::calls(&self.library.functions).delete)(self.raw.as_ptr()) };
    }
}

impl<C: Class> Clone for Reference<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Equal when both mean the same SYCL object.
impl<C: Comparable> PartialEq for Reference<C> {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: the other reference is alive.
        Arc::ptr_eq(&self.0, &other.0) || unsafe { self.is_same(other.as_raw()) }
    }
}

impl<C: Comparable> Eq for Reference<C> {}

impl<C: Comparable> Hash for Reference<C> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // SAFETY: the reference is alive; `std::hash` of SYCL's classes hashes a pointer, which throws nothing.
        state.write_usize(unsafe { (C::comparison(self.functions()).hash)(self.as_raw()) });
    }
}

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
