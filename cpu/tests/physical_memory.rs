//! Physical memory that is imported from a file descriptor.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, missing_docs)]

#[macro_use]
mod common;
#[path = "common/reserve.rs"]
mod reserve;

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::ptr;

use common::{Context, OK, bytes, bytes_mut, device, pattern};
use level_zero_sys as sys;
use reserve::reserve;

const INVALID: common::Result = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
const UNSUPPORTED: common::Result = sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION;
const FD: u32 = sys::ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD.0;
const READ_WRITE: sys::ze_memory_access_attribute_t = sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE;
const SIZE: usize = 16 << 10;

/// A memory file of another program, with a known content.
fn file() -> File {
    let file = unsafe { libc::memfd_create(c"other".as_ptr(), libc::MFD_CLOEXEC) };
    let file = unsafe { File::from_raw_fd(file) };
    file.write_all_at(&pattern(SIZE, 1), 0).unwrap();
    file
}

fn import(flags: u32, descriptor: i32) -> sys::ze_external_memory_import_fd_t {
    sys::ze_external_memory_import_fd_t {
        stype: sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD,
        pNext: ptr::null(),
        flags,
        fd: descriptor,
    }
}

/// Creates physical memory with this structure in the chain.
fn create<T>(
    context: &Context,
    size: usize,
    next: &T,
) -> Result<sys::ze_physical_mem_handle_t, common::Result> {
    let mut desc = sys::ze_physical_mem_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC,
        pNext: ptr::from_ref(next).cast(),
        size,
        ..Default::default()
    };
    let mut handle = ptr::null_mut();
    match ze!(zePhysicalMemCreate(
        context.0,
        device(),
        &raw mut desc,
        &raw mut handle
    )) {
        OK => Ok(handle),
        error => Err(error),
    }
}

#[test]
fn a_descriptor_is_imported() {
    let context = Context::new();
    let other = file();
    let memory = create(&context, SIZE, &import(FD, other.as_raw_fd())).unwrap();
    let range = reserve(&context, SIZE);
    ok!(zeVirtualMemMap(
        context.0, range, SIZE, memory, 0, READ_WRITE
    ));
    assert!(bytes(range, SIZE) == pattern(SIZE, 1));
    bytes_mut(range, SIZE)[5] = 77;
    let mut written = [0];
    other.read_exact_at(&mut written, 5).unwrap();
    assert_eq!(written, [77]);
    // The file has no room for the record of an export.
    let mut handle = sys::ze_ipc_mem_handle_t::default();
    let code = ze!(zeMemGetIpcHandle(context.0, range, &raw mut handle));
    assert_eq!(code, INVALID);
    ok!(zeVirtualMemUnmap(context.0, range, SIZE));
    ok!(zeVirtualMemFree(context.0, range, SIZE));
    ok!(zePhysicalMemDestroy(context.0, memory));
}

#[test]
fn what_cannot_be_imported_is_refused() {
    let context = Context::new();
    let other = file();
    let refused = |size, flags, fd| create(&context, size, &import(flags, fd)).unwrap_err();
    assert_eq!(refused(SIZE, FD, -1), INVALID);
    assert_eq!(
        refused(2 * SIZE, FD, other.as_raw_fd()),
        INVALID,
        "too short"
    );
    let dma = sys::ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF.0;
    assert_eq!(refused(SIZE, dma, other.as_raw_fd()), UNSUPPORTED);
    let unknown = sys::ze_external_memory_import_fd_t {
        stype: sys::ze_structure_type_t(0x7fff_0001),
        ..import(FD, other.as_raw_fd())
    };
    assert_eq!(create(&context, SIZE, &unknown).unwrap_err(), UNSUPPORTED);
    let export = sys::ze_external_memory_export_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC,
        pNext: ptr::null(),
        flags: FD,
    };
    assert_eq!(create(&context, SIZE, &export).unwrap_err(), UNSUPPORTED);
}

#[test]
fn memory_for_handles_of_the_default_type_is_as_any_other() {
    if !common::direct() {
        return;
    }
    let context = Context::new();
    for (flags, expected) in common::HANDLE_TYPES {
        let result = create(&context, SIZE, &common::handle_type(flags));
        assert_eq!(result.err().unwrap_or(OK), expected, "{flags:#x}");
        if let Ok(memory) = result {
            ok!(zePhysicalMemDestroy(context.0, memory));
        }
    }
}

#[test]
fn memory_on_the_host_needs_no_device_and_other_memory_does() {
    let context = Context::new();
    let mut handle = ptr::null_mut();
    let mut desc = sys::ze_physical_mem_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC,
        flags: sys::extensions::ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST,
        size: SIZE,
        ..Default::default()
    };
    if common::direct() {
        ok!(zePhysicalMemCreate(
            context.0,
            ptr::null_mut(),
            &raw mut desc,
            &raw mut handle
        ));
        ok!(zePhysicalMemDestroy(context.0, handle));
        desc.flags = 0;
        let result = ze!(zePhysicalMemCreate(
            context.0,
            ptr::null_mut(),
            &raw mut desc,
            &raw mut handle
        ));
        assert_eq!(result, sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    }
    if common::knows_newer_flags() {
        host_memory_is_mapped(&context, &mut desc);
    }
    (desc.flags, desc.size) = (0, 0);
    let result = ze!(zePhysicalMemCreate(
        context.0,
        device(),
        &raw mut desc,
        &raw mut handle
    ));
    assert_eq!(result, sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
}

fn host_memory_is_mapped(context: &Context, desc: &mut sys::ze_physical_mem_desc_t) {
    desc.flags = sys::extensions::ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST;
    let mut handle = ptr::null_mut();
    ok!(zePhysicalMemCreate(
        context.0,
        device(),
        ptr::from_mut(desc),
        &raw mut handle
    ));
    let range = reserve(context, SIZE);
    ok!(zeVirtualMemMap(
        context.0, range, SIZE, handle, 0, READ_WRITE
    ));
    let mut properties = sys::ze_memory_allocation_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
        ..Default::default()
    };
    let owner = ptr::null_mut();
    let of = range.cast_const();
    ok!(zeMemGetAllocProperties(
        context.0,
        of,
        &raw mut properties,
        owner
    ));
    assert_eq!(properties.type_, sys::ZE_MEMORY_TYPE_HOST);
    ok!(zeVirtualMemUnmap(context.0, range, SIZE));
    ok!(zeVirtualMemFree(context.0, range, SIZE));
    ok!(zePhysicalMemDestroy(context.0, handle));
}
