//! Reservations of virtual memory.

use std::ffi::c_void;
use std::ptr;

use crate::common::Context;

/// Where a reservation may be; the validation layer of Debian 12 refuses null, which is allowed.
pub fn anywhere() -> *const c_void {
    match std::env::var("ZEUSM_TEST_MODE").as_deref() {
        Ok("validated") => ptr::without_provenance(1 << 46),
        _ => ptr::null(),
    }
}

pub fn reserve(context: &Context, size: usize) -> *mut c_void {
    let mut pointer = ptr::null_mut();
    ok!(zeVirtualMemReserve(
        context.0,
        anywhere(),
        size,
        &raw mut pointer
    ));
    pointer
}
