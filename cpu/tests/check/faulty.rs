//! Faulty programs without kernels.

use std::ffi::c_void;
use std::ptr;

use level_zero_sys as sys;

use crate::common::{self, Context, Kind, MIB, Memory, NONE, copy, destroy, fill};
use crate::gallery::Program;

pub const PROGRAMS: &[Program] = &[
    (
        "host_reads_device_memory",
        &["host-access"],
        host_reads_device_memory,
    ),
    (
        "host_writes_device_memory",
        &["host-access"],
        host_writes_device_memory,
    ),
    (
        "host_reads_the_result_of_a_fill",
        &["host-access"],
        host_reads_the_result_of_a_fill,
    ),
    (
        "host_reads_large_device_memory",
        &["host-access"],
        host_reads_large_device_memory,
    ),
    ("host_reads_behind", &["out-of-bounds"], host_reads_behind),
    (
        "host_writes_far_behind",
        &["out-of-bounds"],
        host_writes_far_behind,
    ),
    ("host_writes_before", &["out-of-bounds"], host_writes_before),
    (
        "host_writes_one_byte_behind",
        &["out-of-bounds"],
        host_writes_one_byte_behind,
    ),
    (
        "host_writes_one_byte_before",
        &["out-of-bounds"],
        host_writes_one_byte_before,
    ),
    (
        "host_reads_in_pages_of_freed_memory",
        &["host-access", "use-after-free"],
        host_reads_in_pages_of_freed_memory,
    ),
    ("copy_is_too_long", &["out-of-bounds"], copy_is_too_long),
    ("fill_is_too_long", &["out-of-bounds"], fill_is_too_long),
    ("copy_begins_behind", &["out-of-bounds"], copy_begins_behind),
    ("region_is_too_high", &["out-of-bounds"], region_is_too_high),
    (
        "host_reads_freed_memory",
        &["use-after-free"],
        host_reads_freed_memory,
    ),
    (
        "host_writes_freed_device_memory",
        &["use-after-free"],
        host_writes_freed_device_memory,
    ),
    (
        "host_reads_memory_of_a_destroyed_context",
        &["use-after-free"],
        host_reads_memory_of_a_destroyed_context,
    ),
    (
        "copy_reads_freed_memory",
        &["use-after-free"],
        copy_reads_freed_memory,
    ),
    (
        "fill_of_freed_memory",
        &["use-after-free"],
        fill_of_freed_memory,
    ),
    (
        "memory_is_freed_twice",
        &["invalid-free"],
        memory_is_freed_twice,
    ),
    (
        "free_inside_of_an_allocation",
        &["invalid-free"],
        free_inside_of_an_allocation,
    ),
    (
        "free_of_other_memory",
        &["invalid-free"],
        free_of_other_memory,
    ),
    (
        "free_in_another_context",
        &["invalid-free"],
        free_in_another_context,
    ),
    (
        "memory_of_another_context",
        &["foreign-context"],
        memory_of_another_context,
    ),
    (
        "copy_of_unwritten_memory",
        &["uninitialised"],
        copy_of_unwritten_memory,
    ),
    (
        "copy_of_partly_written_memory",
        &["uninitialised"],
        copy_of_partly_written_memory,
    ),
    (
        "box_of_unwritten_memory",
        &["uninitialised"],
        box_of_unwritten_memory,
    ),
    (
        "memory_is_never_freed",
        &["leak", "leak"],
        memory_is_never_freed,
    ),
    (
        "events_are_never_destroyed",
        &["leak", "leak"],
        events_are_never_destroyed,
    ),
    (
        "a_list_is_never_destroyed",
        &["leak"],
        a_list_is_never_destroyed,
    ),
];

/// A read that the compiler keeps.
pub fn read(memory: Memory, offset: isize) -> u8 {
    unsafe { ptr::read_volatile(memory.cast::<u8>().offset(offset)) }
}

pub fn write(memory: Memory, offset: isize) {
    unsafe { ptr::write_volatile(memory.cast::<u8>().offset(offset), 1) };
}

/// Runs with memory of 1000 bytes, which is freed afterwards.
pub fn with(kind: Kind, work: impl FnOnce(&Context, Memory)) {
    let context = Context::new();
    let memory = context.alloc(kind, 1000);
    work(&context, memory);
    context.free(memory);
}

/// Fills the memory and waits for that.
fn initialise(context: &Context, memory: Memory, size: usize) {
    let list = context.immediate(0);
    fill(list, memory, &[3], size, NONE, &[]);
    common::finish(context, list);
    destroy(list);
}

pub fn host_reads_device_memory() {
    with(Kind::Device, |_, memory| {
        read(memory, 5);
    });
}

fn host_writes_device_memory() {
    with(Kind::Device, |_, memory| write(memory, 999));
}

fn host_reads_the_result_of_a_fill() {
    with(Kind::Device, |context, memory| {
        initialise(context, memory, 1000);
        assert_eq!(read(memory, 5), 3, "the program goes on");
        initialise(context, memory, 1000);
    });
}

fn host_reads_large_device_memory() {
    let context = Context::new();
    let memory = context.alloc(Kind::Device, 16 * MIB);
    read(memory, 9 * MIB as isize);
    context.free(memory);
}

/// A quarantine that is full gives up the pages of the oldest, which any kind of memory may get, and no others.
fn host_reads_in_pages_of_freed_memory() {
    let context = Context::new();
    let freed: Vec<_> = (0..4097).map(|_| freed(&context, Kind::Shared)).collect();
    let memory = context.alloc(Kind::Device, 1000);
    assert_eq!(memory, freed[0]);
    read(memory, 0);
    read(freed[1], 0);
    context.free(memory);
    let memory = context.alloc(Kind::Host, 1000);
    assert_eq!(memory, freed[1]);
    write(memory, 0);
    context.free(memory);
}

fn host_reads_behind() {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 4096);
    read(memory, 4096);
    context.free(memory);
}

fn host_writes_far_behind() {
    let context = Context::new();
    let memory = context.alloc(Kind::Host, 8192);
    write(memory, 8192 + 100);
    context.free(memory);
}

fn host_writes_before() {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 4096);
    write(memory, -1);
    context.free(memory);
}

fn host_writes_one_byte_behind() {
    with(Kind::Shared, |_, memory| write(memory, 1000));
}

fn host_writes_one_byte_before() {
    with(Kind::Host, |_, memory| write(memory, -1));
}

fn copy_is_too_long() {
    with(Kind::Device, |context, memory| {
        let (list, from) = (context.immediate(0), [0_u8; 1001]);
        let code = ze!(zeCommandListAppendMemoryCopy(
            list,
            memory,
            from.as_ptr().cast(),
            from.len(),
            NONE,
            0,
            ptr::null_mut()
        ));
        assert_eq!(code, sys::ZE_RESULT_ERROR_INVALID_SIZE);
        destroy(list);
    });
}

/// Appends a fill that is refused.
fn refused_fill(context: &Context, memory: Memory, size: usize) {
    let (list, pattern) = (context.immediate(0), 1_u8);
    let code = ze!(zeCommandListAppendMemoryFill(
        list,
        memory,
        (&raw const pattern).cast(),
        1,
        size,
        NONE,
        0,
        ptr::null_mut()
    ));
    assert_ne!(code, common::OK);
    destroy(list);
}

fn fill_is_too_long() {
    with(Kind::Shared, |context, memory| {
        refused_fill(context, memory, 5000)
    });
}

fn copy_begins_behind() {
    with(Kind::Device, |context, memory| {
        refused_fill(context, memory.wrapping_byte_add(1000), 10);
    });
}

/// A copy of rows of 100 bytes between memory of 10 rows and the host's.
fn copy_rows(list: common::List, to: Memory, from: Memory, height: u32) -> common::Result {
    let region = sys::ze_copy_region_t {
        width: 100,
        height,
        depth: 1,
        ..Default::default()
    };
    ze!(zeCommandListAppendMemoryCopyRegion(
        list,
        to,
        &raw const region,
        100,
        0,
        from,
        &raw const region,
        100,
        0,
        NONE,
        0,
        ptr::null_mut()
    ))
}

fn region_is_too_high() {
    with(Kind::Device, |context, memory| {
        let (list, mut from) = (context.immediate(0), [0_u8; 2000]);
        let code = copy_rows(list, memory, from.as_mut_ptr().cast(), 11);
        assert_eq!(code, sys::ZE_RESULT_ERROR_INVALID_SIZE);
        destroy(list);
    });
}

fn box_of_unwritten_memory() {
    with(Kind::Device, |context, memory| {
        let (list, mut to) = (context.immediate(0), [0_u8; 1000]);
        let code = copy_rows(list, to.as_mut_ptr().cast(), memory, 10);
        assert_eq!(code, sys::ZE_RESULT_SUCCESS);
        common::finish(context, list);
        destroy(list);
    });
}

fn freed(context: &Context, kind: Kind) -> Memory {
    let memory = context.alloc(kind, 1000);
    context.free(memory);
    memory
}

fn host_reads_freed_memory() {
    let context = Context::new();
    read(freed(&context, Kind::Shared), 30);
}

fn host_writes_freed_device_memory() {
    let context = Context::new();
    write(freed(&context, Kind::Device), 0);
}

fn host_reads_memory_of_a_destroyed_context() {
    let context = Context::new();
    let memory = context.alloc(Kind::Host, 1000);
    drop(context);
    read(memory, 0);
}

fn copy_reads_freed_memory() {
    let context = Context::new();
    let (list, memory, mut to) = (
        context.immediate(0),
        freed(&context, Kind::Device),
        [0_u8; 8],
    );
    let code = ze!(zeCommandListAppendMemoryCopy(
        list,
        to.as_mut_ptr().cast(),
        memory,
        to.len(),
        NONE,
        0,
        ptr::null_mut()
    ));
    assert_eq!(code, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
    destroy(list);
}

fn fill_of_freed_memory() {
    let context = Context::new();
    refused_fill(&context, freed(&context, Kind::Shared), 1000);
}

fn refused_free(context: &Context, memory: Memory) {
    let code = ze!(zeMemFree(context.0, memory));
    assert_eq!(code, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

fn memory_is_freed_twice() {
    let context = Context::new();
    refused_free(&context, freed(&context, Kind::Device));
}

fn free_inside_of_an_allocation() {
    with(Kind::Host, |context, memory| {
        refused_free(context, memory.wrapping_byte_add(64));
    });
}

fn free_of_other_memory() {
    let (context, mut other) = (Context::new(), 0_u64);
    refused_free(&context, (&raw mut other).cast::<c_void>());
}

fn free_in_another_context() {
    with(Kind::Device, |_, memory| {
        let other = Context::new();
        refused_free(&other, memory);
    });
}

fn memory_of_another_context() {
    with(Kind::Shared, |_, memory| {
        let other = Context::new();
        let list = other.immediate(0);
        fill(list, memory, &[1], 10, NONE, &[]);
        common::finish(&other, list);
        destroy(list);
    });
}

fn copied_out(context: &Context, memory: Memory) {
    let (list, mut to) = (context.immediate(0), vec![0_u8; 1000]);
    copy(list, to.as_mut_ptr().cast(), memory, 1000, NONE, &[]);
    common::finish(context, list);
    destroy(list);
}

fn copy_of_unwritten_memory() {
    with(Kind::Device, copied_out);
}

fn copy_of_partly_written_memory() {
    with(Kind::Device, |context, memory| {
        initialise(context, memory, 980);
        copied_out(context, memory);
    });
}

fn memory_is_never_freed() {
    let context = Context::new();
    context.alloc(Kind::Shared, 1000);
    std::mem::forget(context);
}

fn events_are_never_destroyed() {
    let context = Context::new();
    let mut pool = context.pool(2, false);
    for event in pool.events.drain(..) {
        let _ = event;
    }
    drop(pool);
    std::mem::forget(context);
}

fn a_list_is_never_destroyed() {
    let context = Context::new();
    context.immediate(0);
}
