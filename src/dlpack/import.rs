//! Taking: a structure that came from elsewhere, given back exactly once.

use std::ffi::c_void;

use super::{Error, Form, Tensor, abi, release};

/// A structure that was taken over: its deleter is called when this is dropped.
#[derive(Debug)]
pub struct Managed {
    form: Form,
    structure: *mut c_void,
}

// SAFETY: DLPack lets any thread call the deleter, and nothing else is done with the structure.
unsafe impl Send for Managed {}
// SAFETY: as above.
unsafe impl Sync for Managed {}

impl Managed {
    /// Takes the structure over.
    ///
    /// # Safety
    /// `structure` must be a valid structure of that form whose deleter nobody else calls.
    #[must_use]
    pub unsafe fn new(form: Form, structure: *mut c_void) -> Self {
        Self { form, structure }
    }

    /// Reads and checks a structure that has not been taken over, so that one which cannot be used stays whose it is.
    ///
    /// # Errors
    /// [`Error`], which names the field and the value.
    ///
    /// # Safety
    /// `structure` must be a valid structure of that form.
    pub unsafe fn tensor(form: Form, structure: *mut c_void) -> Result<Tensor, Error> {
        // SAFETY: the caller vouches for the structure; of another major version, only what precedes `tensor` is read.
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
        // SAFETY: `new` was told that the structure is valid and this its only owner.
        unsafe { release(self.form, self.structure) };
    }
}
