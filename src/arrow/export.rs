//! Export: structures for consumers, of which that of the array owns a reference to its memory.

use std::ffi::c_void;
use std::ptr;

use super::abi::{Array, DeviceArray, Schema};
use super::format::{self, Error};
use crate::dlpack::{self, Device};
use crate::suai::ItemType;

impl Schema {
    /// The type of an array of items.
    ///
    /// # Errors
    /// [`Error::Item`] for items that Arrow does not have, or packs to bits.
    pub fn of(item: ItemType) -> Result<Self, Error> {
        Ok(Self {
            format: format::of(item)?.as_ptr(),
            name: c"".as_ptr(),
            metadata: ptr::null(),
            flags: 0,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: Some(end_schema),
            private_data: ptr::null_mut(),
        })
    }
}

/// # Safety
/// `schema` must be a structure of [`Schema::of`].
unsafe extern "C" fn end_schema(schema: *mut Schema) {
    // SAFETY: the caller guarantees the structure, which has nothing to free.
    unsafe { (*schema).release = None };
}

/// What the structure of an array points to.
struct Exported<T> {
    buffers: [*const c_void; 2],
    _owner: T,
}

impl DeviceArray {
    /// `length` elements at `pointer` on a device, which may be read at once. The structure keeps `owner` until it is released,
    /// which any thread may do.
    ///
    /// # Safety
    /// `owner` must keep the elements valid.
    pub unsafe fn export<T: Send>(device: Device, pointer: usize, length: usize, owner: T) -> Self {
        let exported = Box::into_raw(Box::new(Exported {
            buffers: [ptr::null(), ptr::with_exposed_provenance(pointer)],
            _owner: owner,
        }));
        let array = Array {
            length: length as i64,
            null_count: 0,
            offset: 0,
            n_buffers: 2,
            n_children: 0,
            // SAFETY: the box is valid until the structure is released.
            buffers: unsafe { (&raw mut (*exported).buffers).cast() },
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: Some(end_array::<T>),
            private_data: exported.cast(),
        };
        let raw = dlpack::abi::Device::from(device);
        Self {
            array,
            device_id: if device == Device::Cpu {
                -1
            } else {
                raw.id.into()
            },
            device_type: raw.kind,
            sync_event: ptr::null_mut(),
            reserved: [0; 3],
        }
    }
}

/// # Safety
/// `array` must be a structure of [`DeviceArray::export`] with this owner, and not be released yet.
unsafe extern "C" fn end_array<T>(array: *mut Array) {
    // SAFETY: `export` made the box, and the structure is marked as released before that is freed.
    unsafe {
        (*array).release = None;
        drop(Box::from_raw((*array).private_data.cast::<Exported<T>>()));
    }
}
