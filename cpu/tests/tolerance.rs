//! Arguments that Intel's driver tolerates, beside those of kernels and structures.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, missing_docs)]

#[macro_use]
mod common;
#[path = "common/process.rs"]
mod process;

use std::ptr;

use common::{Context, Kind, MIB, NONE, bytes, bytes_mut, pattern};
use level_zero_sys as sys;

/// Runs a test of this file without the checks that the other tests expect, nor those of the loader's validation layer.
fn tolerant(test: &str) {
    let layer = "ZE_ENABLE_VALIDATION_LAYER";
    process::alone_with(test, &[(common::STRICT, "0"), (layer, "0")]);
}

#[test]
fn patterns_of_any_length_and_alignment_fill() {
    tolerant("child_fills_with_any_pattern");
}

#[test]
#[ignore = "run by patterns_of_any_length_and_alignment_fill"]
fn child_fills_with_any_pattern() {
    const ROOM: usize = 34 * MIB;
    const GUARD: usize = 8;
    let context = Context::new();
    let memory = context.alloc(Kind::Host, ROOM);
    let list = context.immediate(0);
    for (length, at, size) in [
        (3, 8, 64),
        (8, 12, 63),
        (7, 9, 1000),
        (8192, 16, 3 * 8192 + 5),
        (5000, 8, 2 * MIB),
        (24, 8, 33 * MIB + 1),
        (64, 8, 33 * MIB),
        (32, 32, 33 * MIB + 4),
        (3 * MIB + 1, 11, 18 * MIB),
        (4096, 8, 100),
        (100, 16, 30),
        (100, 16, 0),
    ] {
        bytes_mut(memory, ROOM).fill(0xCC);
        let tile = pattern(length, 3);
        common::fill(list, memory.wrapping_byte_add(at), &tile, size, NONE, &[]);
        common::finish(&context, list);
        let all = bytes(memory, ROOM);
        let mut chunks = all[at..at + size].chunks(length);
        let is_tile = |chunk: &[u8]| *chunk == tile[..chunk.len()];
        assert!(chunks.all(is_tile), "{length} {at} {size}");
        assert_eq!(all[at - GUARD..at], [0xCC; GUARD], "{length} {at} {size}");
        let end = at + size;
        assert_eq!(all[end..end + GUARD], [0xCC; GUARD], "{length} {at} {size}");
    }
    let fill = ze!(zeCommandListAppendMemoryFill(
        list,
        memory,
        memory,
        usize::MAX,
        16,
        NONE,
        0,
        ptr::null_mut()
    ));
    assert_eq!(fill, sys::ZE_RESULT_ERROR_INVALID_SIZE);
    common::destroy(list);
    context.free(memory);
}

/// Intel's driver rounds them up, but the pools of SYCL 2024 lose such memory and end the process when it is freed.
#[test]
fn alignments_that_are_no_power_of_two_are_refused() {
    tolerant("child_allocates_with_other_alignments");
}

#[test]
#[ignore = "run by alignments_that_are_no_power_of_two_are_refused"]
fn child_allocates_with_other_alignments() {
    let context = Context::new();
    for kind in common::KINDS {
        for alignment in [3_usize, 24, 48, 100, 5000, 3 * MIB, usize::MAX] {
            assert_eq!(
                context.try_alloc(kind, 1000, alignment),
                Err(sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT)
            );
        }
    }
}

#[test]
#[cfg_attr(windows, ignore = "there is no virtual memory on Windows")]
fn page_sizes_and_mappings_of_nothing_are_no_errors() {
    tolerant("child_unmaps_twice");
}

#[test]
#[ignore = "run by page_sizes_and_mappings_of_nothing_are_no_errors"]
fn child_unmaps_twice() {
    let context = Context::new();
    let mut page = 0;
    let device = common::device();
    ok!(zeVirtualMemQueryPageSize(
        context.0,
        device,
        0,
        &raw mut page
    ));
    let mut desc = sys::ze_physical_mem_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC,
        size: page,
        ..Default::default()
    };
    let mut physical = ptr::null_mut();
    ok!(zePhysicalMemCreate(
        context.0,
        device,
        &raw mut desc,
        &raw mut physical
    ));
    let mut pages = ptr::null_mut();
    ok!(zeVirtualMemReserve(
        context.0,
        ptr::null(),
        2 * page,
        &raw mut pages
    ));
    let access = sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE;
    ok!(zeVirtualMemMap(context.0, pages, page, physical, 0, access));
    // Pages of which one is mapped are still an error.
    let result = ze!(zeVirtualMemUnmap(context.0, pages, 2 * page));
    assert_eq!(result, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
    ok!(zeVirtualMemUnmap(context.0, pages, page));
    ok!(zeVirtualMemUnmap(context.0, pages, page));
    ok!(zePhysicalMemDestroy(context.0, physical));
    ok!(zeVirtualMemFree(context.0, pages, 2 * page));
}

#[test]
fn memory_is_freed_in_any_context() {
    tolerant("child_frees_in_another_context");
}

#[test]
#[ignore = "run by memory_is_freed_in_any_context"]
fn child_frees_in_another_context() {
    let (context, other) = (Context::new(), Context::new());
    for kind in common::KINDS {
        let memory = context.alloc(kind, MIB);
        other.free(memory);
        let again = ze!(zeMemFree(context.0, memory));
        assert_eq!(again, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT, "{kind:?}");
    }
}

/// MPI, libfabric, UCX and oneCCL ask with contexts of their own, and take what is unknown for the host's memory.
#[test]
fn queries_tell_of_memory_of_any_context() {
    tolerant("child_asks_with_another_context");
}

#[test]
#[ignore = "run by queries_tell_of_memory_of_any_context"]
fn child_asks_with_another_context() {
    let (context, other) = (Context::new(), Context::new());
    for kind in common::KINDS {
        let memory = context.alloc(kind, 1000);
        let own = asked(&context, memory.wrapping_byte_add(10));
        assert_eq!(own.1, (memory, 1000));
        assert_eq!(asked(&other, memory.wrapping_byte_add(10)), own, "{kind:?}");
        context.free(memory);
    }
}

#[test]
#[cfg_attr(windows, ignore = "processes share no memory on Windows")]
fn handles_are_of_memory_of_any_context() {
    tolerant("child_asks_for_handles");
}

#[test]
#[ignore = "run by handles_are_of_memory_of_any_context"]
fn child_asks_for_handles() {
    let (context, other) = (Context::new(), Context::new());
    let invalid = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
    let mut handle = Default::default();
    for kind in common::KINDS {
        let memory = context.alloc(kind, 1000);
        ok!(zeMemGetIpcHandle(other.0, memory, &raw mut handle));
        context.free(memory);
        assert_eq!(
            ze!(zeMemGetIpcHandle(other.0, memory, &raw mut handle)),
            invalid
        );
    }
    let none = ptr::null_mut();
    let exported = ze!(zeMemGetIpcHandle(context.0, none, &raw mut handle));
    assert_eq!(exported, invalid);
    assert_eq!(ze!(zeMemCloseIpcHandle(context.0, none)), invalid);
}

/// The type of the memory at `address`, and its range, as a query with `context` tells.
fn asked(
    context: &Context,
    address: *mut std::ffi::c_void,
) -> (sys::ze_memory_type_t, (*mut std::ffi::c_void, usize)) {
    let mut properties = sys::ze_memory_allocation_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
        ..Default::default()
    };
    let mut device = ptr::null_mut();
    ok!(zeMemGetAllocProperties(
        context.0,
        address,
        &raw mut properties,
        &raw mut device
    ));
    let (mut base, mut size) = (ptr::null_mut(), 0);
    ok!(zeMemGetAddressRange(
        context.0,
        address,
        &raw mut base,
        &raw mut size
    ));
    (properties.type_, (base, size))
}

/// Intel MPI asks for the null pointer of a buffer that is described by a type alone.
#[test]
fn null_is_memory_that_no_context_knows() {
    tolerant("child_asks_for_null");
}

#[test]
#[ignore = "run by null_is_memory_that_no_context_knows"]
fn child_asks_for_null() {
    let context = Context::new();
    let mut properties = sys::ze_memory_allocation_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
        type_: sys::ZE_MEMORY_TYPE_HOST,
        ..Default::default()
    };
    let (none, mut device) = (ptr::null_mut(), common::device());
    ok!(zeMemGetAllocProperties(
        context.0,
        none,
        &raw mut properties,
        &raw mut device
    ));
    assert_eq!(properties.type_, sys::ZE_MEMORY_TYPE_UNKNOWN);
    assert!(device.is_null());
    let (mut base, mut size) = (ptr::null_mut(), 0);
    let range = ze!(zeMemGetAddressRange(
        context.0,
        none,
        &raw mut base,
        &raw mut size
    ));
    assert_eq!(range, sys::extensions::ZE_RESULT_ERROR_ADDRESS_NOT_FOUND);
    let invalid = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
    assert_eq!(ze!(zeMemFree(context.0, none)), invalid);
}

/// Intel MPI closes a mapping by the pointer that it has copied with.
#[test]
#[cfg_attr(windows, ignore = "processes share no memory on Windows")]
fn handles_are_closed_by_any_pointer_into_the_mapping() {
    tolerant("child_closes_by_a_pointer_inside");
}

#[test]
#[ignore = "run by handles_are_closed_by_any_pointer_into_the_mapping"]
fn child_closes_by_a_pointer_inside() {
    let (context, other) = (Context::new(), Context::new());
    let invalid = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
    for kind in common::KINDS {
        let memory = context.alloc(kind, 5000);
        let mut handle = Default::default();
        ok!(zeMemGetIpcHandle(context.0, memory, &raw mut handle));
        for offset in [0, 1, 1984, 4999] {
            let mut opened = ptr::null_mut();
            ok!(zeMemOpenIpcHandle(
                context.0,
                common::device(),
                handle,
                0,
                &raw mut opened
            ));
            let inside = opened.wrapping_byte_add(offset);
            ok!(zeMemCloseIpcHandle(other.0, inside));
            let again = ze!(zeMemCloseIpcHandle(context.0, opened));
            assert_eq!(again, invalid, "{kind:?} {offset}");
        }
        let own = memory.wrapping_byte_add(1);
        assert_eq!(ze!(zeMemCloseIpcHandle(context.0, own)), invalid);
        context.free(memory);
    }
}

/// UCX asks for the kind of a pointer and a dma-buf of its memory in one query, with a context of its own. Without the answer to
/// the former, it takes device memory for the host's.
#[test]
fn a_dma_buf_that_does_not_exist_is_an_answer() {
    tolerant("child_asks_for_a_dma_buf");
}

#[test]
#[ignore = "run by a_dma_buf_that_does_not_exist_is_an_answer"]
fn child_asks_for_a_dma_buf() {
    let (context, other) = (Context::new(), Context::new());
    for kind in common::KINDS {
        let slab = context.alloc(kind, MIB);
        let block = slab.wrapping_byte_add(4096 + 64);
        assert_eq!(
            dma_buf_of(&other, block),
            (kind.memory_type(), -1),
            "{kind:?}"
        );
        assert_eq!(asked(&other, block).1, (slab, MIB));
        context.free(slab);
    }
    let mut program = 0_u64;
    let host: *mut std::ffi::c_void = (&raw mut program).cast();
    assert_eq!(dma_buf_of(&other, host), (sys::ZE_MEMORY_TYPE_UNKNOWN, -1));
}

/// The type of the memory at `address`, and the descriptor of a dma-buf with it.
fn dma_buf_of(context: &Context, address: *mut std::ffi::c_void) -> (sys::ze_memory_type_t, i32) {
    let mut export = sys::ze_external_memory_export_fd_t {
        stype: sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD,
        pNext: ptr::null(),
        flags: sys::ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF.0,
        fd: 77,
    };
    let mut properties = sys::ze_memory_allocation_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
        pNext: (&raw mut export).cast(),
        ..Default::default()
    };
    let mut device = ptr::null_mut();
    ok!(zeMemGetAllocProperties(
        context.0,
        address,
        &raw mut properties,
        &raw mut device
    ));
    (properties.type_, export.fd)
}
