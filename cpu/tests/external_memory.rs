//! Memory that is exported and imported as a file descriptor.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, missing_docs)]

#[macro_use]
mod common;

use std::ffi::c_void;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use common::{Context, Kind, Memory, OK, bytes, bytes_mut, pattern};
use level_zero_sys as sys;
use level_zero_sys::extensions;

type Code = sys::ze_result_t;

const FD: u32 = sys::ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD.0;
const INVALID: Code = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
const KINDS: [Kind; 3] = [Kind::Host, Kind::Device, Kind::Shared];

fn export_desc(flags: u32) -> sys::ze_external_memory_export_desc_t {
    sys::ze_external_memory_export_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC,
        pNext: ptr::null(),
        flags,
    }
}

fn import_desc(descriptor: i32) -> sys::ze_external_memory_import_fd_t {
    sys::ze_external_memory_import_fd_t {
        stype: sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD,
        pNext: ptr::null(),
        flags: FD,
        fd: descriptor,
    }
}

/// Allocates with this structure in the chain of the kind's descriptor.
fn allocate<T>(context: &Context, kind: Kind, size: usize, next: &T) -> Result<Memory, Code> {
    let next: *const c_void = ptr::from_ref(next).cast();
    let (mut device_desc, mut host_desc) = (common::device_desc(), common::host_desc());
    if kind == Kind::Host {
        host_desc.pNext = next;
    } else {
        device_desc.pNext = next;
    }
    let (device_desc, host_desc) = (&raw const device_desc, &raw const host_desc);
    let (context, device) = (context.0, common::device());
    let mut pointer = ptr::null_mut();
    let to = &raw mut pointer;
    let code = match kind {
        Kind::Host => ze!(zeMemAllocHost(context, host_desc, size, 0, to)),
        Kind::Device => ze!(zeMemAllocDevice(context, device_desc, size, 0, device, to)),
        Kind::Shared => ze!(zeMemAllocShared(
            context,
            device_desc,
            host_desc,
            size,
            0,
            device,
            to
        )),
    };
    if code == OK { Ok(pointer) } else { Err(code) }
}

fn export(context: &Context, memory: Memory, flags: u32) -> Result<OwnedFd, Code> {
    let mut export = sys::ze_external_memory_export_fd_t {
        stype: sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD,
        pNext: ptr::null(),
        flags,
        fd: -1,
    };
    let mut properties = sys::ze_memory_allocation_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
        pNext: (&raw mut export).cast(),
        ..Default::default()
    };
    match ze!(zeMemGetAllocProperties(
        context.0,
        memory,
        &raw mut properties,
        ptr::null_mut()
    )) {
        OK => Ok(unsafe { OwnedFd::from_raw_fd(export.fd) }),
        error => Err(error),
    }
}

#[test]
fn imported_memory_is_the_exported_memory() {
    let (context, other) = (Context::new(), Context::new());
    for kind in KINDS {
        for size in [1, 100, 5000, 300_000, 5 << 20] {
            let memory = allocate(&context, kind, size, &export_desc(FD)).unwrap();
            bytes_mut(memory, size).copy_from_slice(&pattern(size, 1));
            let descriptor = export(&context, memory, FD).unwrap();
            let import = import_desc(descriptor.as_raw_fd());
            let imported = allocate(&other, kind, size, &import).unwrap();
            drop(descriptor);
            assert_ne!(imported, memory);
            assert!(bytes(imported, size) == pattern(size, 1), "{kind:?} {size}");
            bytes_mut(imported, size).copy_from_slice(&pattern(size, 2));
            assert!(bytes(memory, size) == pattern(size, 2), "{kind:?} {size}");
            context.free(memory);
            assert!(bytes(imported, size) == pattern(size, 2), "after the free");
            other.free(imported);
        }
    }
}

/// Another program needs no more than `mmap`: its file begins with the memory and holds no neighbour's.
#[test]
fn the_descriptor_can_be_mapped_and_holds_nothing_else() {
    let context = Context::new();
    let neighbour = context.alloc(Kind::Device, 64);
    bytes_mut(neighbour, 64).fill(0xAA);
    let memory = allocate(&context, Kind::Device, 64, &export_desc(FD)).unwrap();
    bytes_mut(memory, 64).copy_from_slice(&pattern(64, 1));
    let descriptor = export(&context, memory, FD).unwrap();
    let mapped = unsafe {
        libc::mmap(
            ptr::null_mut(),
            4096,
            libc::PROT_READ,
            libc::MAP_SHARED,
            descriptor.as_raw_fd(),
            0,
        )
    };
    assert_ne!(mapped, libc::MAP_FAILED);
    let seen = bytes(mapped, 4096);
    assert!(seen[..64] == pattern(64, 1));
    assert!(!seen.contains(&0xAA));
    unsafe { libc::munmap(mapped, 4096) };
    context.free(memory);
    context.free(neighbour);
}

#[test]
fn each_descriptor_belongs_to_the_caller() {
    let context = Context::new();
    let memory = allocate(&context, Kind::Shared, 4096, &export_desc(FD)).unwrap();
    let first = export(&context, memory, FD).unwrap();
    let second = export(&context, memory, FD).unwrap();
    assert_ne!(first.as_raw_fd(), second.as_raw_fd());
    drop(first);
    context.free(memory);
    assert!(File::from(second).metadata().is_ok());
}

/// A file of another program.
#[test]
fn any_file_that_can_be_mapped_is_imported() {
    let context = Context::new();
    let file = unsafe { libc::memfd_create(c"other".as_ptr(), libc::MFD_CLOEXEC) };
    let file = unsafe { File::from_raw_fd(file) };
    file.set_len(10_000).unwrap();
    let import = import_desc(file.as_raw_fd());
    let memory = allocate(&context, Kind::Device, 10_000, &import).unwrap();
    let list = context.immediate(0);
    common::fill(list, memory, &[7], 10_000, common::NONE, &[]);
    common::finish(&context, list);
    common::destroy(list);
    let mut content = vec![0; 10_000];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut content, 0).unwrap();
    assert!(content.iter().all(|byte| *byte == 7));
    assert_eq!(
        allocate(&context, Kind::Device, 20_000, &import),
        Err(INVALID),
        "longer than the file"
    );
    context.free(memory);
    file.set_len(0).unwrap();
    assert_eq!(
        allocate(&context, Kind::Device, 64, &import),
        Err(INVALID),
        "an empty file"
    );
}

#[test]
fn imported_memory_is_aligned_as_requested() {
    let context = Context::new();
    let memory = allocate(&context, Kind::Shared, 10_000, &export_desc(FD)).unwrap();
    let descriptor = export(&context, memory, FD).unwrap();
    let import = import_desc(descriptor.as_raw_fd());
    let mut desc = common::device_desc();
    desc.pNext = ptr::from_ref(&import).cast();
    bytes_mut(memory, 1)[0] = 7;
    for alignment in (0..=22).map(|bit| 1usize << bit) {
        let mut pointer = ptr::null_mut();
        ok!(zeMemAllocDevice(
            context.0,
            &raw const desc,
            10_000,
            alignment,
            common::device(),
            &raw mut pointer
        ));
        assert!(pointer.addr().is_multiple_of(alignment), "{alignment}");
        assert_eq!(bytes(pointer, 1), [7]);
        context.free(pointer);
    }
    context.free(memory);
}

#[test]
fn other_memory_types_and_descriptors_are_refused() {
    let context = Context::new();
    let unsupported = Err(sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION);
    let dma = sys::ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF.0;
    assert_eq!(
        allocate(&context, Kind::Host, 64, &export_desc(dma)),
        unsupported
    );
    for descriptor in [-1, 9999] {
        let import = import_desc(descriptor);
        assert_eq!(allocate(&context, Kind::Host, 64, &import), Err(INVALID));
    }
    let plain = context.alloc(Kind::Device, 64);
    assert_eq!(export(&context, plain, FD).err(), Some(INVALID));
    context.free(plain);
    let memory = allocate(&context, Kind::Device, 64, &export_desc(FD)).unwrap();
    assert_eq!(
        export(&context, memory, dma).err(),
        Some(sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION)
    );
    context.free(memory);
    // Without a type, the memory is as any other.
    let memory = allocate(&context, Kind::Device, 64, &export_desc(0)).unwrap();
    context.free(memory);
}

#[test]
fn the_device_announces_the_type() {
    let properties = common::external_memory();
    assert_eq!(properties.memoryAllocationImportTypes, FD);
    assert_eq!(properties.memoryAllocationExportTypes, FD);
}

fn program_desc(pointer: Memory, size: usize) -> extensions::ze_external_memmap_sysmem_ext_desc_t {
    extensions::ze_external_memmap_sysmem_ext_desc_t {
        stype: extensions::ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC,
        pNext: ptr::null(),
        pSystemMemory: pointer,
        size: size as u64,
    }
}

/// Memory of the program becomes host memory at its own address, and is the program's again after the free.
#[test]
fn memory_of_the_program_is_host_memory_where_it_is() {
    // The layer and the loader of Debian 12 do not know the structure.
    if !common::direct() {
        return;
    }
    const PAGE: usize = 4096;
    let context = Context::new();
    let mut program = vec![1_u8; 6 * PAGE];
    let start = program.as_mut_ptr().addr().next_multiple_of(PAGE) - program.as_ptr().addr();
    let pages: Memory = program[start..].as_mut_ptr().cast();
    let take = |size, desc: &_| allocate(&context, Kind::Host, size, desc);
    for _ in 0..2 {
        let memory = take(2 * PAGE, &program_desc(pages, 2 * PAGE)).unwrap();
        assert_eq!(memory, pages);
        let inside = unsafe { pages.byte_add(5000) };
        assert_eq!(
            common::range(&context, inside),
            Ok((pages.addr(), 2 * PAGE))
        );
        let list = context.immediate(0);
        common::fill(list, memory, &[7], 2 * PAGE, common::NONE, &[]);
        // Other memory of the program begins in the last of these pages.
        let device = context.alloc(Kind::Device, 2 * PAGE);
        common::copy(list, device, inside, 2 * PAGE, common::NONE, &[]);
        common::finish(&context, list);
        assert_eq!(bytes(device, 2 * PAGE)[..3192], [7; 3192]);
        assert_eq!(bytes(device, 2 * PAGE)[3192..], [1; 5000]);
        // A page belongs to one allocation at a time, and no other process gets it.
        let last = unsafe { pages.byte_add(PAGE) };
        assert_eq!(take(PAGE, &program_desc(last, PAGE)), Err(INVALID));
        let mut handle = sys::ze_ipc_mem_handle_t::default();
        assert_eq!(
            ze!(zeMemGetIpcHandle(context.0, memory, &raw mut handle)),
            INVALID
        );
        common::destroy(list);
        context.free(device);
        context.free(memory);
        assert_eq!(bytes(pages, 2 * PAGE), [7; 2 * PAGE]);
    }
    let odd = unsafe { pages.byte_add(1) };
    let nowhere = ptr::without_provenance_mut(PAGE);
    for (size, desc) in [
        (PAGE, program_desc(odd, PAGE)),
        (100, program_desc(pages, 100)),
        (PAGE, program_desc(pages, 0)),
        (0, program_desc(pages, 0)),
        (2 * PAGE, program_desc(pages, PAGE)),
        (PAGE, program_desc(nowhere, PAGE)),
    ] {
        assert_eq!(take(size, &desc), Err(INVALID));
    }
    let shared = allocate(&context, Kind::Shared, PAGE, &program_desc(pages, PAGE));
    assert_eq!(shared, Err(INVALID));
}

/// Pages that the device could not write to are taken only where it does not write.
#[test]
fn read_only_pages_are_taken_to_be_read_and_no_others() {
    if !common::direct() {
        return;
    }
    const PAGE: usize = 4096;
    let context = Context::new();
    let (flags, none) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, ptr::null_mut());
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let pages = unsafe { libc::mmap(none, 2 * PAGE, both, flags, -1, 0) };
    assert_ne!(pages, libc::MAP_FAILED);
    let second = unsafe { pages.byte_add(PAGE) };
    let take = |flags| {
        let next = program_desc(pages, 2 * PAGE);
        let mut desc = common::host_desc();
        (desc.pNext, desc.flags) = (ptr::from_ref(&next).cast(), flags);
        let mut memory = ptr::null_mut();
        let (desc, to) = (&raw const desc, &raw mut memory);
        let code = ze!(zeMemAllocHost(context.0, desc, 2 * PAGE, 0, to));
        if code == OK {
            context.free(memory);
        }
        code
    };
    let read_only = extensions::ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY;
    for (protection, plain, reading) in [
        (both, OK, OK),
        (libc::PROT_READ, INVALID, OK),
        (libc::PROT_NONE, INVALID, INVALID),
    ] {
        assert_eq!(unsafe { libc::mprotect(second, PAGE, protection) }, 0);
        let codes = (take(0), take(read_only));
        assert_eq!(codes, (plain, reading), "{protection}");
    }
    assert_eq!(unsafe { libc::munmap(second, PAGE) }, 0);
    assert_eq!((take(0), take(read_only)), (INVALID, INVALID));
    assert_eq!(unsafe { libc::munmap(pages, PAGE) }, 0);
}

/// The type of handles that the memory will have.
#[test]
fn memory_for_handles_of_the_default_type_is_as_any_other() {
    // The layer and the loader of Debian 12 do not know the structure.
    if !common::direct() {
        return;
    }
    let context = Context::new();
    for kind in KINDS {
        for (flags, expected) in common::HANDLE_TYPES {
            let result = allocate(&context, kind, 64, &common::handle_type(flags));
            assert_eq!(result.err().unwrap_or(OK), expected, "{kind:?} {flags:#x}");
            let _ = result.map(|memory| context.free(memory));
        }
    }
}
