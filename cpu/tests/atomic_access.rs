//! Attributes of atomic access.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, missing_docs)]

#[macro_use]
mod common;
#[path = "common/process.rs"]
mod process;

use std::ffi::c_void;

use common::{Context, Kind, OK, Result, device, devices};
use level_zero_sys as sys;

type Device = sys::ze_device_handle_t;
type Set =
    unsafe extern "C" fn(sys::ze_context_handle_t, Device, *const c_void, usize, u32) -> Result;
type Get = unsafe extern "C" fn(
    sys::ze_context_handle_t,
    Device,
    *const c_void,
    usize,
    *mut u32,
) -> Result;

const INVALID: Result = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
const NO_ATOMICS: u32 = 1;
const DEVICE_ATOMICS: u32 = 1 << 4;
const SYSTEM_ATOMICS: u32 = 1 << 6;

fn set(
    context: &Context,
    device: Device,
    pointer: *const c_void,
    size: usize,
    value: u32,
) -> Result {
    let set: Set = unsafe { common::newer(c"zeMemSetAtomicAccessAttributeExp") };
    unsafe { set(context.0, device, pointer, size, value) }
}

fn get(
    context: &Context,
    device: Device,
    pointer: *const c_void,
    size: usize,
) -> std::result::Result<u32, Result> {
    let get: Get = unsafe { common::newer(c"zeMemGetAtomicAccessAttributeExp") };
    let mut value = 77;
    match unsafe { get(context.0, device, pointer, size, &raw mut value) } {
        OK => Ok(value),
        error => Err(error),
    }
}

#[test]
fn each_attribute_is_read_as_it_was_set() {
    let context = Context::new();
    let shared = context.alloc(Kind::Shared, 8192);
    let own = vec![0_u8; 8192];
    for memory in [shared.cast_const(), own.as_ptr().cast()] {
        assert_eq!(get(&context, device(), memory, 64), Ok(0));
        for value in (0..7).map(|bit| 1 << bit).chain([0, 0x7f]) {
            assert_eq!(set(&context, device(), memory, 8192, value), OK);
            assert_eq!(get(&context, device(), memory, 8192), Ok(value));
        }
    }
    context.free(shared);
}

#[test]
fn an_attribute_belongs_to_a_range_and_a_device() {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 8192);
    let [first, second] = devices();
    let at = |offset| memory.wrapping_byte_add(offset);
    assert_eq!(set(&context, first, memory, 8192, DEVICE_ATOMICS), OK);
    assert_eq!(set(&context, first, at(1000), 24, NO_ATOMICS), OK);
    for (offset, expected) in [
        (0, DEVICE_ATOMICS),
        (999, DEVICE_ATOMICS),
        (1000, NO_ATOMICS),
        (1023, NO_ATOMICS),
        (1024, DEVICE_ATOMICS),
        (8191, DEVICE_ATOMICS),
    ] {
        assert_eq!(
            get(&context, first, at(offset), 1),
            Ok(expected),
            "{offset}"
        );
    }
    assert_eq!(get(&context, second, memory, 1), Ok(0));
    context.free(memory);
}

#[test]
fn new_memory_has_no_attribute_of_freed_memory() {
    let context = Context::new();
    let mut addresses = Vec::new();
    for _ in 0..100 {
        let memory = context.alloc(Kind::Shared, 4096);
        addresses.push(memory);
        assert_eq!(get(&context, device(), memory, 4096), Ok(0));
        assert_eq!(set(&context, device(), memory, 4096, NO_ATOMICS), OK);
        context.free(memory);
    }
    addresses.sort_unstable();
    addresses.dedup();
    assert!(addresses.len() < 100, "an address came again");
}

#[test]
fn wrong_arguments_are_refused() {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 4096);
    let both = |context: &Context, pointer, size| {
        let set = set(context, device(), pointer, size, 0);
        assert_eq!(get(context, device(), pointer, size), Err(set));
        set
    };
    assert_eq!(both(&context, memory.cast_const(), 4097), INVALID);
    assert_eq!(both(&context, memory.cast_const(), 0), INVALID);
    assert_eq!(both(&context, memory.cast_const(), usize::MAX), INVALID);
    assert_eq!(both(&Context::new(), memory.cast_const(), 64), INVALID);
    let null = std::ptr::null();
    let code = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    assert_eq!(both(&context, null, 64), code);
    for kind in [Kind::Host, Kind::Device] {
        let other = context.alloc(kind, 64);
        assert_eq!(both(&context, other.cast_const(), 64), INVALID);
        context.free(other);
    }
    let code = sys::ZE_RESULT_ERROR_INVALID_ENUMERATION;
    assert_eq!(set(&context, device(), memory, 64, 0x80), code);
    let code = sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    assert_eq!(set(&context, std::ptr::null_mut(), memory, 64, 0), code);
    context.free(memory);
}

#[test]
fn a_discrete_device_has_no_atomics_beside_the_host() {
    process::alone_with("child_of_a_discrete_device", &[("ZEUSM_CPU_DISCRETE", "1")]);
}

#[test]
#[ignore = "run by a_discrete_device_has_no_atomics_beside_the_host"]
fn child_of_a_discrete_device() {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 64);
    assert_eq!(set(&context, device(), memory, 64, SYSTEM_ATOMICS), INVALID);
    assert_eq!(set(&context, device(), memory, 64, DEVICE_ATOMICS), OK);
    context.free(memory);
}
