//! Ranges of virtual memory that contain several mappings, or none.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, missing_docs)]

#[macro_use]
mod common;

use std::ffi::c_void;
use std::ptr;

use common::{Context, OK, Result, bytes, device};
use level_zero_sys as sys;

const PAGE: usize = 4096;
const INVALID: Result = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
const READ_WRITE: sys::ze_memory_access_attribute_t = sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE;
const READ_ONLY: sys::ze_memory_access_attribute_t = sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY;
const NO_ACCESS: sys::ze_memory_access_attribute_t = sys::ZE_MEMORY_ACCESS_ATTRIBUTE_NONE;

/// A reservation with physical memory of two pages, which is mapped there any number of times.
struct Range {
    context: Context,
    start: *mut c_void,
    size: usize,
    memory: sys::ze_physical_mem_handle_t,
}

impl Range {
    fn new(size: usize) -> Self {
        let context = Context::new();
        let wanted = match std::env::var("ZEUSM_TEST_MODE").as_deref() {
            // The validation layer of Debian 12 refuses null, which is allowed.
            Ok("validated") => ptr::without_provenance(1 << 46),
            _ => ptr::null(),
        };
        let (mut start, mut memory) = (ptr::null_mut(), ptr::null_mut());
        ok!(zeVirtualMemReserve(context.0, wanted, size, &raw mut start));
        let mut desc = sys::ze_physical_mem_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC,
            size: 2 * PAGE,
            ..Default::default()
        };
        ok!(zePhysicalMemCreate(
            context.0,
            device(),
            &raw mut desc,
            &raw mut memory
        ));
        Self {
            context,
            start,
            size,
            memory,
        }
    }

    fn at(&self, page: usize) -> *mut c_void {
        self.start.wrapping_byte_add(page * PAGE)
    }

    /// Maps two pages.
    fn map(&self, page: usize) {
        ok!(zeVirtualMemMap(
            self.context.0,
            self.at(page),
            2 * PAGE,
            self.memory,
            0,
            READ_WRITE
        ));
    }

    fn unmap(&self, page: usize, pages: usize) -> Result {
        ze!(zeVirtualMemUnmap(
            self.context.0,
            self.at(page),
            pages * PAGE
        ))
    }

    fn set(&self, page: usize, pages: usize, access: sys::ze_memory_access_attribute_t) -> Result {
        ze!(zeVirtualMemSetAccessAttribute(
            self.context.0,
            self.at(page),
            pages * PAGE,
            access
        ))
    }

    /// The attribute from this page on, and the number of pages that have it.
    fn get(&self, page: usize) -> (sys::ze_memory_access_attribute_t, usize) {
        let (mut access, mut length) = (NO_ACCESS, 0);
        ok!(zeVirtualMemGetAccessAttribute(
            self.context.0,
            self.at(page),
            self.size - page * PAGE,
            &raw mut access,
            &raw mut length
        ));
        (access, length / PAGE)
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        ok!(zeVirtualMemFree(self.context.0, self.start, self.size));
        ok!(zePhysicalMemDestroy(self.context.0, self.memory));
    }
}

#[test]
fn one_call_changes_several_mappings() {
    let range = Range::new(10 * PAGE);
    for page in [0, 2, 4, 7] {
        range.map(page);
    }
    assert_eq!(range.set(1, 4, READ_ONLY), OK);
    assert_eq!(range.get(0), (READ_WRITE, 1));
    assert_eq!(range.get(1), (READ_ONLY, 4));
    assert_eq!(range.get(5), (READ_WRITE, 1));
    assert_eq!(range.get(6), (NO_ACCESS, 1));
    assert_eq!(range.get(7), (READ_WRITE, 2));
    // Nothing is mapped at page 6; nothing changes.
    for (page, pages) in [(4, 5), (6, 1), (5, 2), (6, 3)] {
        assert_eq!(range.set(page, pages, NO_ACCESS), INVALID, "{page} {pages}");
        assert_eq!(range.unmap(page, pages), INVALID, "{page} {pages}");
    }
    assert_eq!(range.get(4), (READ_ONLY, 1));
    assert_eq!(bytes(range.at(4), PAGE)[0], 0);
    // A part of a mapping cannot be unmapped.
    assert_eq!(range.unmap(0, 3), INVALID);
    assert_eq!(range.unmap(1, 3), INVALID);
    assert_eq!(range.unmap(0, 4), OK);
    assert_eq!(range.get(0), (NO_ACCESS, 4));
    range.map(1);
    assert_eq!(range.unmap(1, 2), OK);
    assert_eq!(range.unmap(4, 2), OK);
    assert_eq!(range.unmap(7, 2), OK);
}

/// Page by page, this would take longer than the test may.
#[test]
fn a_large_range_is_described_at_once() {
    let range = Range::new(1 << 44);
    let pages = range.size / PAGE;
    assert_eq!(range.get(0), (NO_ACCESS, pages));
    let middle = pages / 2;
    range.map(middle);
    range.map(middle + 2);
    assert_eq!(range.get(0), (NO_ACCESS, middle));
    assert_eq!(range.get(middle), (READ_WRITE, 4));
    assert_eq!(range.set(middle, 2, NO_ACCESS), OK);
    assert_eq!(range.get(0), (NO_ACCESS, middle + 2));
    assert_eq!(range.get(middle + 4), (NO_ACCESS, pages - middle - 4));
    assert_eq!(range.unmap(middle, 4), OK);
}
