//! Export: a structure that owns a reference to its memory.

use std::ffi::c_void;
use std::ptr;

use super::{Device, Error, Form, abi};
use crate::suai::{ItemType, Layout};

/// What consumers get of an array: its shape and strides as numbers that the structures refer to.
#[derive(Debug)]
pub struct Exportable {
    tensor: abi::Tensor,
    item: ItemType,
    _numbers: Box<[i64]>,
}

// SAFETY: its pointers refer to its own numbers, which do not change, and to the data, which is not accessed.
unsafe impl Send for Exportable {}
// SAFETY: as above.
unsafe impl Sync for Exportable {}

impl Exportable {
    /// Of the array at `pointer`, which is null only without elements.
    ///
    /// `data` is the lowest address of the array, and `byte_offset` that of its first element relative to it: some packages ignore
    /// the offset of arrays without negative strides, and some refuse elements below `data`. Without elements, `data` is the
    /// array's pointer, although DLPack's header specifies null, as dpctl refuses null.
    ///
    /// # Errors
    /// [`Error::Item`] for items without a DLPack type, [`Error::Layout`] for strides that are no multiples of the item's size.
    pub fn new(pointer: usize, item: ItemType, layout: &Layout) -> Result<Self, Error> {
        let dtype = item.dlpack().ok_or(Error::Item(item))?;
        let ndim = layout.ndim();
        let shape = layout.shape().iter().map(|&size| size as i64);
        let strides = layout.element_strides()?;
        let strides = strides.iter().map(|&stride| stride as i64);
        let mut numbers: Box<[i64]> = shape.chain(strides).collect();
        let (to_data, byte_offset) = match layout.elements() {
            0 => (0, 0),
            _ => {
                let lowest = layout.extent().start;
                (lowest, layout.byte_offset() - lowest)
            }
        };
        let first = numbers.as_mut_ptr();
        let tensor = abi::Tensor {
            data: ptr::with_exposed_provenance_mut(pointer.wrapping_add_signed(to_data)),
            device: Device::Cpu.into(),
            ndim: i32::try_from(ndim).unwrap_or(i32::MAX), // MAX_NDIM is far less.
            dtype,
            shape: first,
            // Within the numbers, which have the strides after the shape, or one past their end.
            strides: first.wrapping_add(ndim),
            byte_offset: byte_offset.unsigned_abs() as u64,
        };
        Ok(Self {
            tensor,
            item,
            _numbers: numbers,
        })
    }

    /// The array on a device, for a structure of that form; shape and strides are valid as long as `self`.
    ///
    /// On the host, `data` is the address of the first element, as in NumPy's exports: dpnp ignores the offset of host arrays with
    /// negative strides.
    ///
    /// # Errors
    /// [`Error::Unversioned`] for numbers of fewer than 8 bits, which only the flags of the versioned structure describe.
    #[inline]
    pub fn on(&self, device: Device, form: Form) -> Result<abi::Tensor, Error> {
        if form == Form::Unversioned && self.is_padded() {
            return Err(Error::Unversioned(self.item));
        }
        let mut tensor = self.tensor;
        tensor.device = device.into();
        if device == Device::Cpu {
            tensor.data = tensor.data.wrapping_byte_add(tensor.byte_offset as usize);
            tensor.byte_offset = 0;
        }
        Ok(tensor)
    }

    /// The flags of a versioned structure.
    #[must_use]
    pub fn flags(&self, is_read_only: bool, is_copied: bool) -> u64 {
        let flag = |set, flag| if set { flag } else { 0 };
        flag(is_read_only, abi::FLAG_READ_ONLY)
            | flag(is_copied, abi::FLAG_IS_COPIED)
            | flag(self.is_padded(), abi::FLAG_IS_PADDED)
    }

    /// Whether each number of fewer than 8 bits has a byte of its own.
    fn is_padded(&self) -> bool {
        !self.tensor.dtype.fills_bytes()
    }
}

/// A structure with its owner.
#[repr(C)] // The structure is at the beginning.
struct Exported<S, T> {
    structure: S,
    owner: T,
}

/// Makes the structure, and keeps `owner` until its deleter is called, which any thread may do.
///
/// The result points to an [`abi::Versioned`] or [`abi::Unversioned`] according to `form`.
///
/// # Safety
/// `owner` must keep the tensor's data, shape and strides valid.
pub unsafe fn export<T: Send>(
    form: Form,
    tensor: abi::Tensor,
    flags: u64,
    owner: T,
) -> *mut c_void {
    match form {
        Form::Versioned => {
            let structure = abi::Versioned {
                version: abi::VERSION,
                context: ptr::null_mut(),
                deleter: Some(delete::<abi::Versioned, T>),
                flags,
                tensor,
            };
            Box::into_raw(Box::new(Exported { structure, owner })).cast()
        }
        Form::Unversioned => {
            let structure = abi::Unversioned {
                tensor,
                context: ptr::null_mut(),
                deleter: Some(delete::<abi::Unversioned, T>),
            };
            Box::into_raw(Box::new(Exported { structure, owner })).cast()
        }
    }
}

/// The deleter of a structure.
///
/// # Safety
/// `structure` must be made by `export` with this form and owner, and not be deleted yet.
unsafe extern "C" fn delete<S, T>(structure: *mut S) {
    // SAFETY: `export` made the box, at whose beginning the structure is; a deleter is called once.
    drop(unsafe { Box::from_raw(structure.cast::<Exported<S, T>>()) });
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
