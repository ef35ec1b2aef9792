//! Import: a foreign structure, whose deleter is called exactly once.

use std::ffi::c_void;

use super::{Error, Form, Tensor, abi, release};

/// The owner of a foreign structure; the drop calls the structure's deleter.
#[derive(Debug)]
pub struct Managed {
    form: Form,
    structure: *mut c_void,
}

// SAFETY: DLPack allows any thread to call the deleter, which is the only access to the structure.
unsafe impl Send for Managed {}
// SAFETY: as above.
unsafe impl Sync for Managed {}

impl Managed {
    /// Takes the ownership of the structure.
    ///
    /// # Safety
    /// `structure` must be a valid structure of that form without another owner.
    #[must_use]
    pub unsafe fn new(form: Form, structure: *mut c_void) -> Self {
        Self { form, structure }
    }

    /// Reads and validates a structure before its ownership is taken, so that an invalid one stays its owner's.
    ///
    /// # Errors
    /// [`Error`], which names the field and the value.
    ///
    /// # Safety
    /// `structure` must be a valid structure of that form.
    pub unsafe fn tensor(form: Form, structure: *mut c_void) -> Result<Tensor, Error> {
        // SAFETY: the caller guarantees the validity of the structure. For another major version, only fields before
        // `tensor` are read.
        unsafe {
            match form {
                Form::Unversioned => {
                    Tensor::read(&(*structure.cast::<abi::Unversioned>()).tensor, 0)
                }
                Form::Versioned => {
                    let structure = structure.cast::<abi::Versioned>();
                    let version = (*structure).version;
                    if version.major != abi::VERSION.major {
                        return Err(Error::Version(version));
                    }
                    Tensor::read(&(*structure).tensor, (*structure).flags)
                }
            }
        }
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        // SAFETY: the caller of `new` guaranteed that the structure is valid, and this its only owner.
        unsafe { release(self.form, self.structure) };
    }
}
