//! Import: a foreign array becomes a structure of DLPack, whose deleter releases it.

use std::ffi::CStr;
use std::{ptr, slice};

use super::abi::{Array, DeviceArray, Schema};
use super::format::{self, Error};
use crate::dlpack::{self, Exportable, Form};
use crate::suai::{ItemType, Layout};

impl DeviceArray {
    /// Moves the array out of its structure to one of DLPack, read-only as Arrow's arrays are. After an error the structure is
    /// unchanged.
    ///
    /// # Errors
    /// [`Error`], which says what the array must not have, and the remedy.
    ///
    /// # Safety
    /// `structure` must be valid and have no other user; if `on_host`, only the `ArrowArray` at its beginning. `schema` must be its
    /// type.
    pub unsafe fn to_dlpack(
        structure: *mut Self,
        on_host: bool,
        schema: &Schema,
    ) -> Result<*mut dlpack::abi::Versioned, Error> {
        // SAFETY: the caller guarantees the structures.
        unsafe {
            let mut device = dlpack::Device::Cpu;
            if !on_host {
                let id = i32::try_from((*structure).device_id).unwrap_or(-1);
                let kind = (*structure).device_type;
                device = dlpack::abi::Device { kind, id }.into();
                if !(*structure).sync_event.is_null() {
                    return Err(Error::Structure(
                        "the array has an event to wait for, which is not supported: export it when it is ready",
                    ));
                }
            }
            let array = &raw mut (*structure).array;
            let (item, pointer, layout) = checked(schema, &*array)?;
            let exportable = Exportable::new(pointer, item, &layout)?;
            let tensor = exportable.on(device, Form::Versioned)?;
            let flags = exportable.flags(true, false);
            // The new owner releases the array and has the numbers; the old structure is none any more.
            let owner = (exportable, ptr::read(array));
            (*array).release = None;
            Ok(dlpack::export(Form::Versioned, tensor, flags, owner).cast())
        }
    }
}

/// The items of an array, the address of its buffer, and its layout from there.
///
/// # Safety
/// The structures must be valid.
unsafe fn checked(schema: &Schema, array: &Array) -> Result<(ItemType, usize, Layout), Error> {
    let malformed = |reason| Err(Error::Structure(reason));
    if schema.format.is_null() || schema.release.is_none() || array.release.is_none() {
        return malformed("the structure was used before");
    }
    // SAFETY: the caller guarantees a text that ends with a zero.
    let format = unsafe { CStr::from_ptr(schema.format) };
    if !schema.dictionary.is_null() || !array.dictionary.is_null() {
        let format = format.to_string_lossy();
        return Err(Error::Format(format!("{format}, dictionary-encoded")));
    }
    let item = format::item(format)?;
    if array.n_buffers != 2 || array.buffers.is_null() || array.n_children != 0 {
        return malformed("the structure is malformed: numbers have two buffers and no children");
    }
    // SAFETY: the caller guarantees as many pointers.
    let buffers = unsafe { slice::from_raw_parts(array.buffers, 2) };
    if array.null_count > 0 || (array.null_count < 0 && !buffers[0].is_null()) {
        return Err(Error::Nulls(array.null_count));
    }
    let pointer = buffers[1].expose_provenance();
    if array.offset < 0 || (pointer == 0 && array.length != 0) {
        return malformed("the structure is malformed: its elements are outside their buffer");
    }
    let layout = Layout::new(&[array.length], None, array.offset, item.size());
    Ok((item, pointer, layout.map_err(dlpack::Error::from)?))
}
