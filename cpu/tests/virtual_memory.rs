//! Reserved addresses and physical memory.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;
#[path = "common/forks.rs"]
mod forks;
#[path = "common/process.rs"]
mod process;
#[path = "common/reserve.rs"]
mod reserve;

use std::ffi::c_void;
use std::ptr;

use common::{Context, Kind, MIB, NONE, OK, Result, bytes, bytes_mut, device};
use level_zero_sys as sys;
use level_zero_sys::extensions;
use reserve::{anywhere, physical, reserve};

const INVALID: Result = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
const READ_WRITE: sys::ze_memory_access_attribute_t = sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE;
const READ_ONLY: sys::ze_memory_access_attribute_t = sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY;
const NO_ACCESS: sys::ze_memory_access_attribute_t = sys::ZE_MEMORY_ACCESS_ATTRIBUTE_NONE;

fn page(context: &Context) -> usize {
    let mut page = 0;
    ok!(zeVirtualMemQueryPageSize(
        context.0,
        device(),
        MIB,
        &raw mut page
    ));
    page
}

fn attribute(
    context: &Context,
    pointer: *const c_void,
    size: usize,
) -> (sys::ze_memory_access_attribute_t, usize) {
    let (mut access, mut length) = (NO_ACCESS, 0);
    ok!(zeVirtualMemGetAccessAttribute(
        context.0,
        pointer,
        size,
        &raw mut access,
        &raw mut length
    ));
    (access, length)
}

#[test]
fn mapped_memory_is_copied_and_filled() {
    let context = Context::new();
    let size = 8 * page(&context);
    let (range, memory) = (reserve(&context, 2 * size), physical(&context, size));
    // The same memory twice.
    let twin = unsafe { range.byte_add(size) };
    for place in [range, twin] {
        ok!(zeVirtualMemMap(
            context.0, place, size, memory, 0, READ_WRITE
        ));
    }
    assert_eq!(bytes(range, size), vec![0; size]);
    let list = context.immediate(0);
    common::fill(list, range, &[7], size, NONE, &[]);
    common::finish(&context, list);
    assert_eq!(bytes(twin, size), vec![7; size]);
    let other = context.alloc(Kind::Device, size);
    common::copy(list, other, twin, size, NONE, &[]);
    common::finish(&context, list);
    assert_eq!(bytes(other, size), vec![7; size]);

    // It lives until it is mapped nowhere.
    ok!(zePhysicalMemDestroy(context.0, memory));
    ok!(zeVirtualMemUnmap(context.0, range, size));
    bytes_mut(twin, size)[0] = 8;
    ok!(zeVirtualMemUnmap(context.0, twin, size));
    ok!(zeVirtualMemFree(context.0, range, 2 * size));
    common::destroy(list);
    context.free(other);
}

/// As Intel's driver answers, on which SYCL relies: of the kind of the physical memory, one allocation for each call.
#[test]
fn queries_know_mapped_memory() {
    let (context, other) = (Context::new(), Context::new());
    let size = 4 * page(&context);
    let (range, memory) = (reserve(&context, 2 * size), physical(&context, size));
    let kind = |context: &Context, pointer: *const c_void| {
        let mut out = sys::ze_memory_allocation_properties_t {
            stype: sys::ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
            ..Default::default()
        };
        let mut owner = ptr::null_mut();
        let (to, of) = (&raw mut out, &raw mut owner);
        ok!(zeMemGetAllocProperties(context.0, pointer, to, of));
        (out.type_, owner == device())
    };
    let unknown = (sys::ZE_MEMORY_TYPE_UNKNOWN, false);
    assert_eq!(kind(&context, range), unknown);
    let twin = unsafe { range.byte_add(size) };
    for place in [range, twin] {
        ok!(zeVirtualMemMap(
            context.0, place, size, memory, 0, READ_WRITE
        ));
        let inside = unsafe { place.byte_add(size - 1) };
        assert_eq!(kind(&context, inside), (sys::ZE_MEMORY_TYPE_DEVICE, true));
        assert_eq!(common::range(&context, inside), Ok((place.addr(), size)));
        assert_eq!(kind(&other, inside), unknown);
    }
    ok!(zeVirtualMemUnmap(context.0, range, size));
    assert_eq!(kind(&context, range), unknown);
    assert!(common::range(&context, range).is_err());
    assert_eq!(kind(&context, twin), (sys::ZE_MEMORY_TYPE_DEVICE, true));
    ok!(zeVirtualMemUnmap(context.0, twin, size));
    ok!(zePhysicalMemDestroy(context.0, memory));
    ok!(zeVirtualMemFree(context.0, range, 2 * size));
}

#[test]
fn physical_memory_has_an_id_and_a_size() {
    type Get = unsafe extern "C" fn(
        sys::ze_context_handle_t,
        sys::ze_physical_mem_handle_t,
        *mut extensions::ze_physical_mem_properties_t,
    ) -> Result;
    let get: Get = unsafe { common::newer(c"zePhysicalMemGetProperties") };
    let context = Context::new();
    let page = page(&context);
    let properties = |memory| {
        let mut out = extensions::ze_physical_mem_properties_t {
            stype: extensions::ZE_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES,
            pNext: ptr::null_mut(),
            id: 0,
            size: 0,
        };
        assert_eq!(unsafe { get(context.0, memory, &raw mut out) }, OK);
        (out.id, out.size)
    };
    let (a, b) = (physical(&context, page), physical(&context, 3 * page));
    assert_eq!(properties(b).1, 3 * page as u64);
    assert_ne!(properties(a).0, properties(b).0);
    assert_eq!(properties(a), properties(a));
    ok!(zePhysicalMemDestroy(context.0, a));
    ok!(zePhysicalMemDestroy(context.0, b));
}

#[test]
fn physical_memory_keeps_its_bytes_while_it_is_not_mapped() {
    let context = Context::new();
    let page = page(&context);
    let (range, memory) = (reserve(&context, 4 * page), physical(&context, 2 * page));
    ok!(zeVirtualMemMap(
        context.0,
        range,
        2 * page,
        memory,
        0,
        READ_WRITE
    ));
    bytes_mut(range, 2 * page)[page] = 5;
    ok!(zeVirtualMemUnmap(context.0, range, 2 * page));
    // Its second page, elsewhere.
    let place = unsafe { range.byte_add(3 * page) };
    ok!(zeVirtualMemMap(
        context.0, place, page, memory, page, READ_ONLY
    ));
    assert_eq!(bytes(place, page)[0], 5);
    ok!(zeVirtualMemUnmap(context.0, place, page));
    ok!(zeVirtualMemFree(context.0, range, 4 * page));
    ok!(zePhysicalMemDestroy(context.0, memory));
}

#[test]
fn attributes_hold_for_their_pages() {
    let context = Context::new();
    let page = page(&context);
    let (range, memory) = (reserve(&context, 8 * page), physical(&context, 4 * page));
    ok!(zeVirtualMemMap(
        context.0,
        range,
        4 * page,
        memory,
        0,
        READ_WRITE
    ));
    let at = |index: usize| unsafe { range.byte_add(index * page) };
    ok!(zeVirtualMemSetAccessAttribute(
        context.0,
        at(1),
        2 * page,
        READ_ONLY
    ));
    assert_eq!(attribute(&context, range, 8 * page), (READ_WRITE, page));
    assert_eq!(attribute(&context, at(1), 7 * page), (READ_ONLY, 2 * page));
    assert_eq!(attribute(&context, at(1), page), (READ_ONLY, page));
    assert_eq!(attribute(&context, at(3), 5 * page), (READ_WRITE, page));
    assert_eq!(attribute(&context, at(4), 4 * page), (NO_ACCESS, 4 * page));
    // A write to a page without the attribute ends the process.
    for (index, survives) in [(0, true), (1, false), (3, true), (4, false)] {
        let child = unsafe { libc::fork() };
        if child == 0 {
            unsafe { at(index).cast::<u8>().write_volatile(1) };
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(libc::WIFEXITED(status), survives, "page {index}");
    }
    ok!(zeVirtualMemUnmap(context.0, range, 4 * page));
    ok!(zeVirtualMemFree(context.0, range, 8 * page));
    ok!(zePhysicalMemDestroy(context.0, memory));
}

#[test]
fn misuse_is_refused() {
    let context = Context::new();
    let page = page(&context);
    let (range, memory) = (reserve(&context, 4 * page), physical(&context, 2 * page));
    let at = |index: usize| unsafe { range.byte_add(index * page) };
    let map = |place, size, offset, access| {
        ze!(zeVirtualMemMap(
            context.0, place, size, memory, offset, access
        ))
    };
    let size = sys::ZE_RESULT_ERROR_INVALID_SIZE;
    assert_eq!(map(range, 3 * page, 0, READ_WRITE), size);
    assert_eq!(map(range, 2 * page, page, READ_WRITE), size);
    assert_eq!(
        map(range, page, usize::MAX - page + 1, READ_WRITE),
        size,
        "the end would overflow"
    );
    assert_eq!(
        map(at(3), 2 * page, 0, READ_WRITE),
        INVALID,
        "beyond the end"
    );
    assert_eq!(
        map(unsafe { range.byte_add(1) }, page, 0, READ_WRITE),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT
    );
    assert_eq!(
        map(range, page + 1, 0, READ_WRITE),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE
    );
    assert_eq!(
        map(range, page, 0, sys::ze_memory_access_attribute_t(9)),
        sys::ZE_RESULT_ERROR_INVALID_ENUMERATION
    );
    assert_eq!(map(at(1), 2 * page, 0, READ_WRITE), OK);
    for index in 0..3 {
        let wanted = if index == 0 { 2 * page } else { page };
        assert_eq!(map(at(index), wanted, 0, READ_WRITE), INVALID, "mapped");
    }
    let unmap = |place, size| ze!(zeVirtualMemUnmap(context.0, place, size));
    assert_eq!(unmap(at(1), page), INVALID, "a part");
    assert_eq!(unmap(range, page), INVALID, "not mapped");
    let set = |place, size| {
        ze!(zeVirtualMemSetAccessAttribute(
            context.0, place, size, READ_ONLY
        ))
    };
    assert_eq!(set(at(0), page), INVALID, "not mapped");
    assert_eq!(set(at(2), 2 * page), INVALID, "beyond what is mapped");
    let free = |place, size| ze!(zeVirtualMemFree(context.0, place, size));
    assert_eq!(free(range, 4 * page), INVALID, "something is mapped");
    assert_eq!(unmap(at(1), 2 * page), OK);
    assert_eq!(free(range, page), INVALID, "a part");
    assert_eq!(free(at(1), 3 * page), INVALID, "a part");
    assert_eq!(free(range, 4 * page), OK);
    assert_eq!(free(range, 4 * page), INVALID, "not reserved any more");
    assert_eq!(map(range, page, 0, READ_WRITE), INVALID, "not reserved");
    ok!(zePhysicalMemDestroy(context.0, memory));
    let gone = ze!(zePhysicalMemDestroy(context.0, memory));
    assert_eq!(gone, INVALID);
}

#[test]
fn more_than_the_machine_has_is_refused() {
    let context = Context::new();
    let mut desc = sys::ze_physical_mem_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC,
        size: 1 << 50,
        ..Default::default()
    };
    let mut handle = ptr::null_mut();
    let code = ze!(zePhysicalMemCreate(
        context.0,
        device(),
        &raw mut desc,
        &raw mut handle
    ));
    assert_eq!(code, sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    let mut pointer = ptr::null_mut();
    let code = ze!(zeVirtualMemReserve(
        context.0,
        anywhere(),
        1 << 62,
        &raw mut pointer
    ));
    assert_eq!(code, sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
}

#[test]
fn mapped_memory_is_opened_by_a_handle() {
    let context = Context::new();
    let page = page(&context);
    let range = reserve(&context, 4 * page);
    let memory = physical(&context, 3 * page);
    // Two parts of the memory, of which the second begins at its third page.
    let second = range.wrapping_byte_add(2 * page);
    for (at, length, offset) in [(range, 2 * page, 0), (second, page, 2 * page)] {
        ok!(zeVirtualMemMap(
            context.0, at, length, memory, offset, READ_WRITE
        ));
    }
    bytes_mut(range, 3 * page).fill(7);
    let export = |pointer| {
        let mut handle = sys::ze_ipc_mem_handle_t::default();
        let result = ze!(zeMemGetIpcHandle(context.0, pointer, &raw mut handle));
        (result, handle)
    };
    assert_eq!(export(range.wrapping_byte_add(page)).0, INVALID);
    let (result, handle) = export(second);
    assert_eq!(result, OK);
    assert_eq!(export(second).1.data, handle.data);
    let open = || {
        let mut opened = ptr::null_mut();
        let result = ze!(zeMemOpenIpcHandle(
            context.0,
            device(),
            handle,
            0,
            &raw mut opened
        ));
        (result, opened)
    };
    let (result, opened) = open();
    assert_eq!(result, OK);
    bytes_mut(second, page)[1] = 8;
    assert_eq!(bytes(opened, page)[..3], [7, 8, 7]);
    bytes_mut(opened, page)[2] = 9;
    assert_eq!(bytes(second, page)[..3], [7, 8, 9]);
    forks::in_child(|| open().0 == OK);
    ok!(zeVirtualMemUnmap(context.0, second, page));
    assert_eq!(open().0, INVALID, "the descriptor is closed");
    assert_eq!(bytes(opened, page)[..3], [7, 8, 9]);
    ok!(zeMemCloseIpcHandle(context.0, opened));
    ok!(zeVirtualMemUnmap(context.0, range, 2 * page));
    ok!(zeVirtualMemFree(context.0, range, 4 * page));
    ok!(zePhysicalMemDestroy(context.0, memory));
}

/// A handle of what is mapped at `pointer`.
fn export(context: &Context, pointer: *const c_void) -> sys::ze_ipc_mem_handle_t {
    let mut handle = sys::ze_ipc_mem_handle_t::default();
    ok!(zeMemGetIpcHandle(context.0, pointer, &raw mut handle));
    handle
}

/// Whether memory can be opened by its handle.
fn opens(context: &Context, handle: sys::ze_ipc_mem_handle_t) -> bool {
    let mut opened = ptr::null_mut();
    let place = &raw mut opened;
    let result = ze!(zeMemOpenIpcHandle(context.0, device(), handle, 0, place));
    if result == OK {
        ok!(zeMemCloseIpcHandle(context.0, opened));
    }
    result == OK
}

#[test]
fn each_mapping_of_the_same_memory_has_a_handle() {
    let context = Context::new();
    let page = page(&context);
    let (range, memory) = (reserve(&context, 4 * page), physical(&context, 2 * page));
    let mappings = [(range, page), (range.wrapping_byte_add(2 * page), 2 * page)];
    let handles = mappings.map(|(at, length)| {
        ok!(zeVirtualMemMap(
            context.0, at, length, memory, 0, READ_WRITE
        ));
        export(&context, at)
    });
    assert!(handles.iter().all(|handle| opens(&context, *handle)));
    let [(first, one_page), (second, two_pages)] = mappings;
    ok!(zeVirtualMemUnmap(context.0, first, one_page));
    assert!(!opens(&context, handles[0]));
    assert!(opens(&context, handles[1]));
    // What was unmapped gives its place to a later one.
    for _ in 0..200 {
        ok!(zeVirtualMemMap(
            context.0, first, one_page, memory, 0, READ_ONLY
        ));
        assert!(opens(&context, export(&context, first)));
        ok!(zeVirtualMemUnmap(context.0, first, one_page));
    }
    ok!(zeVirtualMemUnmap(context.0, second, two_pages));
    ok!(zeVirtualMemFree(context.0, range, 4 * page));
    ok!(zePhysicalMemDestroy(context.0, memory));
}

#[test]
fn physical_memory_that_is_mapped_nowhere_is_opened_by_a_handle() {
    let context = Context::new();
    let size = 2 * page(&context);
    let memory = physical(&context, size);
    let handle = export(&context, memory.cast());
    assert_eq!(export(&context, memory.cast()).data, handle.data);
    forks::in_child(|| opens(&context, handle));
    let mut opened = ptr::null_mut();
    let place = &raw mut opened;
    ok!(zeMemOpenIpcHandle(context.0, device(), handle, 0, place));
    bytes_mut(opened, size).fill(7);
    let range = reserve(&context, size);
    ok!(zeVirtualMemMap(
        context.0, range, size, memory, 0, READ_ONLY
    ));
    assert_eq!(bytes(range, size), vec![7; size]);
    ok!(zeMemCloseIpcHandle(context.0, opened));
    ok!(zePhysicalMemDestroy(context.0, memory));
    assert!(opens(&context, handle), "it is still mapped");
    ok!(zeVirtualMemUnmap(context.0, range, size));
    assert!(!opens(&context, handle), "the descriptor is closed");
    ok!(zeVirtualMemFree(context.0, range, size));
}

#[test]
fn a_handle_is_valid_after_a_child_has_unmapped_its_memory() {
    let context = Context::new();
    let page = page(&context);
    let (range, memory) = (reserve(&context, page), physical(&context, page));
    ok!(zeVirtualMemMap(
        context.0, range, page, memory, 0, READ_WRITE
    ));
    let handle = export(&context, range);
    forks::in_child(|| {
        let own = opens(&context, export(&context, range));
        ok!(zeVirtualMemUnmap(context.0, range, page));
        own
    });
    assert!(opens(&context, handle));
    ok!(zeVirtualMemUnmap(context.0, range, page));
    ok!(zeVirtualMemFree(context.0, range, page));
    ok!(zePhysicalMemDestroy(context.0, memory));
}

/// As workers of a pool may end.
#[test]
fn children_that_end_leave_room_for_handles() {
    let context = Context::new();
    let page = page(&context);
    let (range, memory) = (reserve(&context, page), physical(&context, page));
    ok!(zeVirtualMemMap(
        context.0, range, page, memory, 0, READ_WRITE
    ));
    let handle = export(&context, range);
    // More than the handles that a page can have.
    for _ in 0..80 {
        forks::in_child(|| opens(&context, export(&context, range)));
    }
    assert!(opens(&context, handle));
    ok!(zeVirtualMemUnmap(context.0, range, page));
    ok!(zeVirtualMemFree(context.0, range, page));
    ok!(zePhysicalMemDestroy(context.0, memory));
}

#[test]
fn a_child_shares_mapped_memory() {
    let context = Context::new();
    let page = page(&context);
    let (range, memory) = (reserve(&context, page), physical(&context, page));
    ok!(zeVirtualMemMap(
        context.0, range, page, memory, 0, READ_WRITE
    ));
    forks::in_child(|| {
        bytes_mut(range, page)[0] = 9;
        ze!(zeVirtualMemUnmap(context.0, range, page)) == OK
    });
    assert_eq!(bytes(range, page)[0], 9);
    ok!(zeVirtualMemUnmap(context.0, range, page));
    ok!(zeVirtualMemFree(context.0, range, page));
    ok!(zePhysicalMemDestroy(context.0, memory));
}

#[test]
fn the_device_says_that_read_only_pages_cannot_be_written() {
    let mut access = extensions::ze_device_readonly_memory_ext_properties_t {
        stype: extensions::ZE_STRUCTURE_TYPE_DEVICE_READONLY_MEMORY_EXT_PROPERTIES,
        pNext: ptr::null_mut(),
        readonlyCapability: 0,
    };
    let mut properties = sys::ze_device_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        pNext: (&raw mut access).cast(),
        ..Default::default()
    };
    ok!(zeDeviceGetProperties(device(), &raw mut properties));
    assert_eq!(
        access.readonlyCapability,
        extensions::ZE_DEVICE_READONLY_MEMORY_CAPABILITY_ENFORCED
    );
}
