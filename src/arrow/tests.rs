//! Round trips of the structures, and invalid ones.
#![allow(clippy::unwrap_used)]

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use super::abi::Array;
use super::*;
use crate::dlpack::{Device, Form, Managed};
use crate::suai::ItemType;

fn int32() -> ItemType {
    "<i4".parse().unwrap()
}

/// Three elements on a device, with their owner.
fn three(device: Device, owner: &Arc<()>) -> DeviceArray {
    // SAFETY: the elements are not accessed.
    unsafe { DeviceArray::export(device, 0x1000, 3, Arc::clone(owner)) }
}

#[test]
fn the_structures_are_laid_out_as_in_c() {
    assert_eq!((size_of::<Schema>(), size_of::<Array>()), (72, 80));
    assert_eq!(offset_of!(Schema, release), 56);
    assert_eq!(offset_of!(Array, release), 64);
    assert_eq!(offset_of!(DeviceArray, device_type), 88);
    assert_eq!(offset_of!(DeviceArray, sync_event), 96);
    assert_eq!(size_of::<DeviceArray>(), 128);
}

#[test]
fn an_exported_array_is_imported_unchanged_and_released_once() {
    let schema = Schema::of(int32()).unwrap();
    for device in [Device::Cpu, Device::OneApi(3)] {
        let owner = Arc::new(());
        let mut array = three(device, &owner);
        array.array.offset = 1;
        array.array.length = 2;
        // SAFETY: `export` made the structures, and this is their only consumer.
        let (tensor, taken) = unsafe {
            let structure: *mut c_void = DeviceArray::to_dlpack(&mut array, false, &schema)
                .unwrap()
                .cast();
            let tensor = Managed::tensor(Form::Versioned, structure).unwrap();
            (tensor, Managed::new(Form::Versioned, structure))
        };
        let first = tensor.pointer + tensor.layout.byte_offset().cast_unsigned();
        assert_eq!((first, tensor.layout.shape()), (0x1004, &[2][..]));
        assert_eq!((tensor.device, tensor.item), (device, int32()));
        assert!(tensor.read_only && !tensor.copied);
        drop(array);
        assert_eq!(Arc::strong_count(&owner), 2);
        drop(taken);
        assert_eq!(Arc::strong_count(&owner), 1);
    }
}

#[test]
fn an_array_without_elements_needs_no_buffer() {
    let owner = Arc::new(());
    let mut array = three(Device::Cpu, &owner);
    (array.array.length, array.array.null_count) = (0, -1);
    // SAFETY: `export` made the structures with two buffers, and this is their only consumer.
    let taken = unsafe {
        *array.array.buffers.add(1) = ptr::null();
        let schema = Schema::of(int32()).unwrap();
        let structure = DeviceArray::to_dlpack(&mut array, true, &schema).unwrap();
        Managed::new(Form::Versioned, structure.cast())
    };
    drop((array, taken));
    assert_eq!(Arc::strong_count(&owner), 1);
}

#[test]
fn a_structure_that_no_consumer_takes_is_released() {
    let owner = Arc::new(());
    drop(three(Device::Cpu, &owner));
    assert_eq!(Arc::strong_count(&owner), 1);
}

/// The refusal of an array after a change.
fn refusal(change: impl FnOnce(&mut Schema, &mut DeviceArray)) -> String {
    let owner = Arc::new(());
    let mut schema = Schema::of(int32()).unwrap();
    let mut array = three(Device::Cpu, &owner);
    change(&mut schema, &mut array);
    // SAFETY: the structures are valid but for fields that are checked.
    let refused = unsafe { DeviceArray::to_dlpack(&mut array, false, &schema) };
    assert_eq!(Arc::strong_count(&owner), 2);
    refused.unwrap_err().to_string()
}

#[test]
fn what_is_no_array_of_numbers_is_refused() {
    let some = ptr::without_provenance_mut::<c_void>(8);
    let format = |text: &'static std::ffi::CStr| refusal(|schema, _| schema.format = text.as_ptr());
    assert!(format(c"b").contains("'b' are not imported"));
    assert!(format(c"+s").contains("'+s'"));
    let refusals = [
        (
            refusal(|_, it| it.array.dictionary = some.cast()),
            "dictionary",
        ),
        (
            refusal(|schema, _| schema.format = ptr::null()),
            "used before",
        ),
        (refusal(|schema, _| schema.release = None), "used before"),
        (refusal(|it, _| it.dictionary = some.cast()), "dictionary"),
        (
            refusal(|_, it| it.array.buffers = ptr::null_mut()),
            "two buffers",
        ),
        (
            refusal(|_, it| {
                // SAFETY: `export` made two buffers.
                unsafe { *it.array.buffers.add(1) = ptr::null() };
            }),
            "outside",
        ),
        (refusal(|_, it| it.array.null_count = 2), "is 2"),
        (refusal(|_, it| it.array.n_buffers = 3), "two buffers"),
        (refusal(|_, it| it.array.n_children = 1), "children"),
        (refusal(|_, it| it.array.offset = -1), "outside"),
        (refusal(|_, it| it.array.length = -1), "-1"),
        (refusal(|_, it| it.array.length = i64::MAX), "any memory"),
        (refusal(|_, it| it.sync_event = some), "event"),
    ];
    for (message, expected) in refusals {
        assert!(message.contains(expected), "{message}");
    }
    let uncounted = refusal(|_, it| {
        it.array.null_count = -1;
        // SAFETY: `export` made two buffers.
        unsafe { *it.array.buffers = some };
    });
    assert!(uncounted.contains("is -1"), "{uncounted}");
}

#[test]
fn items_without_a_type_of_arrow_are_refused() {
    for typestr in ["|b1", "<c8", ">i4", "|V4", "<f16"] {
        let refused = Schema::of(typestr.parse().unwrap()).map(drop);
        assert!(matches!(refused, Err(Error::Item(_))), "{typestr}");
    }
}
