//! Reservations of virtual memory, and physical memory.
#![allow(dead_code)]

use std::ffi::c_void;
use std::ptr;

use level_zero_sys as sys;

use crate::common::{Context, device};

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

pub fn physical(context: &Context, size: usize) -> sys::ze_physical_mem_handle_t {
    let mut desc = sys::ze_physical_mem_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC,
        size,
        ..Default::default()
    };
    let mut handle = ptr::null_mut();
    ok!(zePhysicalMemCreate(
        context.0,
        device(),
        &raw mut desc,
        &raw mut handle
    ));
    handle
}
