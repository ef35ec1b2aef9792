//! Round trips of the structures, and invalid ones.
#![allow(clippy::unwrap_used)]

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::suai::{ItemType, Layout};

fn tensor(shape: &[i64], strides: Option<&[i64]>, offset: i64) -> Tensor {
    let item: ItemType = "<f4".parse().unwrap();
    Tensor {
        pointer: 0x1000,
        device: Device::OneApi(3),
        item,
        layout: Layout::new(shape, strides, offset, item.size()).unwrap(),
        read_only: true,
        copied: false,
    }
}

#[test]
fn the_structures_are_laid_out_as_in_c() {
    assert_eq!(size_of::<abi::Tensor>(), 48);
    assert_eq!(offset_of!(abi::Tensor, dtype), 20);
    assert_eq!(offset_of!(abi::Tensor, shape), 24);
    assert_eq!(offset_of!(abi::Unversioned, context), 48);
    assert_eq!(offset_of!(abi::Unversioned, deleter), 56);
    assert_eq!(offset_of!(abi::Versioned, context), 8);
    assert_eq!(offset_of!(abi::Versioned, deleter), 16);
    assert_eq!(offset_of!(abi::Versioned, flags), 24);
    assert_eq!(offset_of!(abi::Versioned, tensor), 32);
}

/// The structure of a tensor.
fn export_tensor<T: Send>(tensor: &Tensor, form: Form, owner: T) -> *mut c_void {
    let exportable = Exportable::new(tensor.pointer, tensor.item, &tensor.layout).unwrap();
    let raw = exportable.on(tensor.device, form).unwrap();
    let flags = exportable.flags(tensor.read_only, tensor.copied);
    // SAFETY: the owner has the numbers, and the data is not accessed.
    unsafe { export(form, raw, flags, (exportable, owner)) }
}

#[test]
fn an_exported_tensor_is_imported_unchanged() {
    for (given, offset) in [
        (tensor(&[2, 3], None, 0), 0),
        (tensor(&[2, 3], Some(&[-3, 1]), 5), 3),
        (tensor(&[], None, 2), 0),
    ] {
        for form in Form::ALL {
            let owner = Arc::new(());
            let structure = export_tensor(&given, form, Arc::clone(&owner));
            // SAFETY: `export` made the structure, which is taken over once.
            let (read, taken) = unsafe {
                (
                    Managed::tensor(form, structure),
                    Managed::new(form, structure),
                )
            };
            let read = read.unwrap();
            assert_eq!(read.layout.element_offset().unwrap(), offset);
            let addresses = |tensor: &Tensor| tensor.layout.addresses(tensor.pointer);
            assert_eq!(addresses(&read), addresses(&given));
            assert_eq!(read.layout.shape(), given.layout.shape());
            assert_eq!(
                read.layout.element_strides().unwrap(),
                given.layout.element_strides().unwrap()
            );
            assert_eq!((read.device, read.item), (given.device, given.item));
            assert_eq!(read.read_only, form == Form::Versioned);
            assert_eq!(Arc::strong_count(&owner), 2);
            drop(taken);
            assert_eq!(Arc::strong_count(&owner), 1);
        }
    }
}

/// A well-formed tensor of three floats.
fn raw(shape: &mut [i64], strides: &mut [i64]) -> abi::Tensor {
    abi::Tensor {
        data: ptr::without_provenance_mut(0x1000),
        device: Device::Cpu.into(),
        ndim: shape.len() as i32,
        dtype: abi::DataType {
            code: 2,
            bits: 32,
            lanes: 1,
        },
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    }
}

fn refusal(tensor: &abi::Tensor) -> String {
    // SAFETY: shape and strides come from slices of `ndim` integers, or are null.
    unsafe { Tensor::read(tensor, 0) }.unwrap_err().to_string()
}

#[test]
fn an_invalid_field_is_named() {
    let (mut shape, mut strides) = ([3], [1]);
    let good = raw(&mut shape, &mut strides);
    // SAFETY: as for `refusal`.
    let read = unsafe { Tensor::read(&good, abi::FLAG_IS_COPIED) }.unwrap();
    assert!(read.copied && !read.read_only);
    for (bad, message) in [
        (abi::Tensor { ndim: -1, ..good }, "'ndim' is -1"),
        (abi::Tensor { ndim: 65, ..good }, "'ndim' is 65"),
        (
            abi::Tensor {
                shape: ptr::null_mut(),
                ..good
            },
            "'shape' is null",
        ),
        (
            abi::Tensor {
                data: ptr::null_mut(),
                ..good
            },
            "'data' is null",
        ),
        (
            abi::Tensor {
                byte_offset: u64::MAX,
                ..good
            },
            "reach further",
        ),
    ] {
        assert!(refusal(&bad).contains(message), "{}", refusal(&bad));
    }
    for (code, bits, lanes, message) in [
        (2, 32, 4, "4 lanes"),
        (2, 32, 0, "0 lanes"),
        (2, 12, 1, "12 bits"),
        (0, 12, 1, "12 bits"),
        (0, 4, 1, "4 bits"), // packed, without the flag
        (4, 32, 1, "type code 4"),
        (3, 64, 1, "type code 3"), // a handle
        (0, 128, 1, "128 bits"),
        (6, 16, 1, "16 bits"),
    ] {
        let dtype = abi::DataType { code, bits, lanes };
        let message_of = refusal(&abi::Tensor { dtype, ..good });
        assert!(message_of.contains(message), "{message_of}");
    }
    let (mut shape, mut strides) = ([-3], [1]);
    assert!(refusal(&raw(&mut shape, &mut strides)).contains("negative"));
    let (mut shape, mut strides) = ([i64::MAX, 2], [1, 1]);
    assert!(refusal(&raw(&mut shape, &mut strides)).contains("any memory"));
}

#[test]
fn null_strides_are_row_major_and_odd_offsets_move_the_pointer() {
    let mut shape = [2, 3];
    let tensor = abi::Tensor {
        strides: ptr::null_mut(),
        byte_offset: 9,
        ..raw(&mut shape, &mut [3, 1])
    };
    // SAFETY: as for `refusal`.
    let read = unsafe { Tensor::read(&tensor, 0) }.unwrap();
    assert_eq!(
        (read.pointer, read.layout.element_offset().unwrap()),
        (0x1001, 2)
    );
    assert!(read.layout.is_c_contiguous());
}

#[test]
fn items_are_those_of_the_type_codes() {
    let (mut shape, mut strides) = ([3], [1]);
    for (code, bits, typestr) in [
        (0, 8, "|i1"),
        (1, 16, "<u2"),
        (2, 64, "<f8"),
        (5, 128, "<c16"),
        (6, 8, "|b1"),
    ] {
        let dtype = abi::DataType {
            code,
            bits,
            lanes: 1,
        };
        let given = abi::Tensor {
            dtype,
            ..raw(&mut shape, &mut strides)
        };
        // SAFETY: as for `refusal`.
        let read = unsafe { Tensor::read(&given, 0) }.unwrap();
        assert_eq!(read.item.to_string(), typestr);
    }
}

#[test]
fn another_major_version_is_not_read() {
    let mut structure = abi::Versioned {
        version: abi::Version { major: 2, minor: 1 },
        context: ptr::null_mut(),
        deleter: None,
        flags: 0,
        tensor: raw(&mut [3], &mut [1]),
    };
    // SAFETY: the structure is valid, and has no deleter.
    let refused = unsafe {
        let structure = (&raw mut structure).cast();
        drop(Managed::new(Form::Versioned, structure));
        Managed::tensor(Form::Versioned, structure)
    };
    assert!(refused.unwrap_err().to_string().contains("DLPack 2.1"));
}

/// Small numbers, and those at the ends of their ranges.
fn any_integer() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => -3..9i64,
        1 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, i64::MAX, 1 << 62, 1 << 32, -(1 << 32)]),
        1 => any::<i64>(),
    ]
}

proptest! {
    /// Any structure is either refused with an error, or imported as an array within the address space whose export is the
    /// same.
    #[test]
    fn any_structure_is_read_or_refused(
        (shape, strides) in (0..70usize).prop_flat_map(|length| {
            let integers = || prop::collection::vec(any_integer(), length);
            (integers(), prop::option::of(integers()))
        }),
        ndim in prop_oneof![9 => Just(None), 1 => (-2..3i32).prop_map(Some)],
        (data, byte_offset) in (prop_oneof![Just(0), any::<usize>()], any_integer()),
        (code, bits, lanes) in (0..8u8, prop::sample::select(vec![0u8, 1, 8, 16, 32, 64, 128, 255]), 0..3u16),
        (kind, id, flags) in (any::<i32>(), any::<i32>(), any::<u64>()),
    ) {
        let ndim = ndim.unwrap_or(shape.len() as i32).min(shape.len() as i32);
        let (mut shape, mut strides) = (shape, strides);
        let structure = abi::Tensor {
            data: ptr::without_provenance_mut(data),
            device: abi::Device { kind, id },
            ndim,
            dtype: abi::DataType { code, bits, lanes },
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut().map_or(ptr::null_mut(), |strides| strides.as_mut_ptr()),
            byte_offset: byte_offset as u64,
        };
        // SAFETY: shape and strides have at least `ndim` integers, or are null.
        match unsafe { Tensor::read(&structure, flags) } {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(read) => {
                let found = read.layout.addresses(read.pointer);
                prop_assert!(found.is_ok(), "{found:?}");
                prop_assert!(read.layout.elements() == 0 || data != 0);
                let same = read.layout.shape().iter().zip(&shape).all(|(&read, &given)| read as i64 == given);
                prop_assert!(same && read.layout.ndim() == ndim as usize);
                let out = export_tensor(&read, Form::Versioned, ());
                // SAFETY: `export` made the structure, which is taken over once.
                let (back, _taken) = unsafe { (Managed::tensor(Form::Versioned, out), Managed::new(Form::Versioned, out)) };
                let back = back.unwrap();
                prop_assert_eq!(back.layout.addresses(back.pointer), found);
                prop_assert_eq!((back.item, back.read_only, back.copied), (read.item, read.read_only, read.copied));
            }
        }
    }
}

#[test]
fn a_structure_without_a_deleter_is_left_alone() {
    let (mut shape, mut strides) = ([3], [1]);
    let tensor = raw(&mut shape, &mut strides);
    let mut versioned = abi::Versioned {
        version: abi::VERSION,
        context: ptr::null_mut(),
        deleter: None,
        flags: 0,
        tensor,
    };
    let mut unversioned = abi::Unversioned {
        tensor,
        context: ptr::null_mut(),
        deleter: None,
    };
    // SAFETY: both are structures of their forms, which own nothing.
    unsafe {
        release(Form::Versioned, (&raw mut versioned).cast());
        release(Form::Unversioned, (&raw mut unversioned).cast());
    }
    assert_eq!(versioned.tensor.shape, unversioned.tensor.shape);
}
