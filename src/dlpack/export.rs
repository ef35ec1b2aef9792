//! Export: a structure that owns a reference to its memory.

use std::any::Any;
use std::ffi::c_void;
use std::ptr;

use super::{Device, Error, Form, Tensor, abi};

/// The structure with the data that it refers to; its `context` points to this.
struct Exported {
    structure: Structure,
    /// The shape, then the strides.
    _numbers: Vec<i64>,
    _owner: Box<dyn Any + Send>,
}

enum Structure {
    Versioned(abi::Versioned),
    Unversioned(abi::Unversioned),
}

impl Tensor {
    /// Makes the structure, and keeps `owner` until its deleter is called, which any thread may do.
    ///
    /// The result points to an [`abi::Versioned`] or [`abi::Unversioned`] according to `form`. On the host, `data` is the
    /// address of the first element, as in NumPy's exports: dpnp ignores the offset of host arrays with negative strides.
    /// Elsewhere, `data` is the lowest address of the array and `byte_offset` that of its first element relative to it: some
    /// packages ignore the offset of arrays without negative strides, and some refuse elements below `data`. Without elements,
    /// `data` is the array's pointer, although DLPack's header specifies null, as dpctl refuses null.
    ///
    /// # Errors
    /// [`Error::Item`] for items without a DLPack type, [`Error::Layout`] for strides that are no multiples of the item's size.
    pub fn export(&self, form: Form, owner: Box<dyn Any + Send>) -> Result<*mut c_void, Error> {
        let dtype = self.item.dlpack().ok_or(Error::Item(self.item))?;
        let ndim = self.layout.ndim();
        let shape = self.layout.shape().iter().map(|&size| size as i64);
        let strides = self.layout.element_strides()?;
        let mut numbers: Vec<i64> = shape
            .chain(strides.iter().map(|&stride| stride as i64))
            .collect();
        let offset = self.layout.byte_offset();
        let (to_data, byte_offset) = match self.device {
            _ if self.layout.elements() == 0 => (0, 0),
            Device::Cpu => (offset, 0),
            _ => {
                let lowest = self.layout.extent().start();
                (lowest, offset - lowest)
            }
        };
        let data = self.pointer.wrapping_add_signed(to_data);
        let first = numbers.as_mut_ptr();
        let tensor = abi::Tensor {
            data: ptr::with_exposed_provenance_mut(data),
            device: self.device.into(),
            ndim: i32::try_from(ndim).unwrap_or(i32::MAX), // MAX_NDIM is far less.
            dtype,
            shape: first,
            // Within `numbers`, which has the strides after the shape, or one past its end.
            strides: first.wrapping_add(ndim),
            byte_offset: byte_offset.unsigned_abs() as u64,
        };
        let structure = match form {
            Form::Versioned => Structure::Versioned(abi::Versioned {
                version: abi::VERSION,
                context: ptr::null_mut(),
                deleter: Some(delete_versioned),
                flags: self.flags(),
                tensor,
            }),
            Form::Unversioned => Structure::Unversioned(abi::Unversioned {
                tensor,
                context: ptr::null_mut(),
                deleter: Some(delete_unversioned),
            }),
        };
        let exported = Box::into_raw(Box::new(Exported {
            structure,
            _numbers: numbers,
            _owner: owner,
        }));
        // SAFETY: the box has just been made, and has no other reference.
        Ok(match unsafe { &mut (*exported).structure } {
            Structure::Versioned(structure) => {
                structure.context = exported.cast();
                ptr::from_mut(structure).cast()
            }
            Structure::Unversioned(structure) => {
                structure.context = exported.cast();
                ptr::from_mut(structure).cast()
            }
        })
    }

    fn flags(&self) -> u64 {
        let flag = |set, flag| if set { flag } else { 0 };
        flag(self.read_only, abi::FLAG_READ_ONLY) | flag(self.copied, abi::FLAG_IS_COPIED)
    }
}

/// The deleter of a versioned structure.
///
/// # Safety
/// `structure` must be null or made by `export`, and not be deleted yet.
unsafe extern "C" fn delete_versioned(structure: *mut abi::Versioned) {
    if !structure.is_null() {
        // SAFETY: `export` made the structure, whose context is the box around it; a deleter is called once.
        drop(unsafe { Box::from_raw((*structure).context.cast::<Exported>()) });
    }
}

/// The deleter of an unversioned structure.
///
/// # Safety
/// As for [`delete_versioned`].
unsafe extern "C" fn delete_unversioned(structure: *mut abi::Unversioned) {
    if !structure.is_null() {
        // SAFETY: as for `delete_versioned`.
        drop(unsafe { Box::from_raw((*structure).context.cast::<Exported>()) });
    }
}

/// Calls the deleter of a structure, if there is one.
///
/// # Safety
/// `structure` must be a valid structure of that form; it is invalid afterwards.
pub unsafe fn release(form: Form, structure: *mut c_void) {
    // SAFETY: the caller guarantees the validity of the structure and its form.
    unsafe {
        match form {
            Form::Versioned => {
                let structure = structure.cast::<abi::Versioned>();
                if let Some(deleter) = (*structure).deleter {
                    deleter(structure);
                }
            }
            Form::Unversioned => {
                let structure = structure.cast::<abi::Unversioned>();
                if let Some(deleter) = (*structure).deleter {
                    deleter(structure);
                }
            }
        }
    }
}
