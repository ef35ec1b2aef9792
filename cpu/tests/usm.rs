//! Memory: kinds, limits, queries, freeing.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;

use std::ffi::c_void;
use std::ptr;
use std::thread;

use common::{
    Context, KINDS, Kind, MIB, Memory, OK, Result, bytes, bytes_mut, device, direct, range, total,
};
use level_zero_sys as sys;

const ADDRESS_NOT_FOUND: Result = sys::ze_result_t(0x7800_0021);

fn properties(
    context: &Context,
    pointer: *const c_void,
) -> (sys::ze_memory_type_t, u64, u64, bool) {
    let mut out = sys::ze_memory_allocation_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
        ..Default::default()
    };
    let mut owner = ptr::null_mut();
    ok!(zeMemGetAllocProperties(
        context.0,
        pointer,
        &raw mut out,
        &raw mut owner
    ));
    assert!(owner.is_null() || owner == device());
    (out.type_, out.id, out.pageSize, !owner.is_null())
}

fn most_at_once() -> usize {
    let mut out = sys::ze_device_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        ..Default::default()
    };
    ok!(zeDeviceGetProperties(device(), &raw mut out));
    out.maxMemAllocSize as usize
}

/// Handles for this machine are the only ones.
#[test]
#[cfg_attr(windows, ignore = "processes share no memory on Windows")]
fn a_handle_of_the_default_type_is_given_and_no_other() {
    type Get = unsafe extern "C" fn(
        sys::ze_context_handle_t,
        *const c_void,
        *mut c_void,
        *mut sys::ze_ipc_mem_handle_t,
    ) -> sys::ze_result_t;
    let get: Get = unsafe { common::newer(c"zeMemGetIpcHandleWithProperties") };
    let context = Context::new();
    let memory = context.alloc(Kind::Device, 4096);
    let mut plain = sys::ze_ipc_mem_handle_t::default();
    ok!(zeMemGetIpcHandle(context.0, memory, &raw mut plain));
    for (flags, expected) in common::HANDLE_TYPES {
        let mut wanted = common::handle_type(flags);
        let mut handle = sys::ze_ipc_mem_handle_t::default();
        let next = (&raw mut wanted).cast();
        assert_eq!(
            unsafe { get(context.0, memory, next, &raw mut handle) },
            expected,
            "{flags:#x}"
        );
        if expected == OK {
            assert_eq!(handle.data, plain.data);
        }
    }
    context.free(memory);
}

#[test]
fn every_kind_and_size_is_reported() {
    let context = Context::new();
    let mut ids = Vec::new();
    let memory = context.alloc(Kind::Host, 1);
    let (_, _, smallest_page, _) = properties(&context, memory);
    context.free(memory);
    for kind in KINDS {
        for size in [1, 63, 64, 4095, 4096, 262_143, 262_144, 5 * MIB + 1] {
            let memory = context.alloc(kind, size);
            bytes_mut(memory, size).fill(0xA5);
            let (type_, id, page, has_device) = properties(&context, memory);
            assert_eq!(
                (type_, has_device),
                (kind.memory_type(), kind != Kind::Host)
            );
            // A multiple of the page size of the smallest allocation, too.
            assert!(page.is_power_of_two() && page >= smallest_page);
            assert_eq!((memory.addr() as u64) % page, 0);
            assert!(!ids.contains(&id), "an id is used once");
            ids.push(id);
            for offset in [0, size / 2, size - 1] {
                let inside = unsafe { memory.byte_add(offset) };
                assert_eq!(range(&context, inside), Ok((memory as usize, size)));
                assert_eq!(properties(&context, inside).1, id);
            }
            let past = unsafe { memory.byte_add(size) };
            assert_ne!(
                range(&context, past).map(|found| found.0),
                Ok(memory as usize)
            );
            assert!(bytes(memory, size).iter().all(|byte| *byte == 0xA5));
            context.free(memory);
            assert_eq!(range(&context, memory), Err(ADDRESS_NOT_FOUND));
        }
    }
}

#[test]
fn alignment_is_honoured_or_refused() {
    let context = Context::new();
    for kind in KINDS {
        for power in (0..=24).chain([30]) {
            for size in [1, 100, 300_000, 5 * MIB] {
                let memory = context.try_alloc(kind, size, 1 << power).unwrap();
                assert!(
                    (memory as usize).is_multiple_of(1 << power),
                    "{kind:?} {size} 2^{power}"
                );
                context.free(memory);
            }
        }
        for alignment in [3, 24, 65_537, 1 << 31, 1 << 40, 1 << 63, usize::MAX] {
            assert_eq!(
                context.try_alloc(kind, 64, alignment),
                Err(sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT),
                "{alignment}"
            );
        }
    }
}

#[test]
fn sizes_beyond_the_limits_are_refused() {
    let context = Context::new();
    let (total, most) = (total(), most_at_once());
    assert!(most <= total);
    for kind in KINDS {
        for size in [0, most + 1, usize::MAX - 4096, usize::MAX] {
            assert_eq!(
                context.try_alloc(kind, size, 0),
                Err(sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE),
                "{size}"
            );
        }
    }
}

/// By the extension, and by the experimental one before it, whose structure has the same fields.
#[test]
fn relaxed_limits_leave_only_the_machines() {
    check_relaxed_limits(sys::ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC);
    if common::knows_newer_flags() {
        check_relaxed_limits(sys::extensions::ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXT_DESC);
    }
}

fn check_relaxed_limits(stype: sys::ze_structure_type_t) {
    let context = Context::new();
    let mut limits = sys::ze_relaxed_allocation_limits_exp_desc_t {
        stype,
        flags: sys::ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE.0,
        ..Default::default()
    };
    let alloc = |limits: &sys::ze_relaxed_allocation_limits_exp_desc_t, size: usize| {
        let mut desc = common::device_desc();
        desc.pNext = ptr::from_ref(limits).cast();
        let mut pointer: Memory = ptr::null_mut();
        let result = ze!(zeMemAllocDevice(
            context.0,
            &raw const desc,
            size,
            0,
            device(),
            &raw mut pointer,
        ));
        if result == OK {
            context.free(pointer);
        }
        result
    };
    assert_eq!(alloc(&limits, MIB), OK);
    for size in [total() + 4096, 1 << 46, usize::MAX - 8192, usize::MAX] {
        assert_eq!(
            alloc(&limits, size),
            sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
        );
    }
    limits.flags = 0;
    assert_eq!(
        alloc(&limits, most_at_once() + 1),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE
    );
    limits.flags = 0x80;
    assert_eq!(
        alloc(&limits, MIB),
        sys::ZE_RESULT_ERROR_INVALID_ENUMERATION
    );
    if direct() {
        limits.stype = sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD;
        assert_eq!(
            alloc(&limits, MIB),
            sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION
        );
    }
}

#[test]
fn descriptors_are_checked() {
    let context = Context::new();
    let mut pointer: Memory = ptr::null_mut();
    let alloc = |desc: *const sys::ze_host_mem_alloc_desc_t, place: *mut Memory| {
        ze!(zeMemAllocHost(context.0, desc, 64, 0, place))
    };
    assert_eq!(
        alloc(ptr::null(), &raw mut pointer),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER
    );
    let mut desc = common::host_desc();
    assert_eq!(
        alloc(&raw const desc, ptr::null_mut()),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER
    );
    desc.flags = 1 << 20;
    assert_eq!(
        alloc(&raw const desc, &raw mut pointer),
        sys::ZE_RESULT_ERROR_INVALID_ENUMERATION
    );
    desc = common::host_desc();
    desc.stype = sys::ZE_STRUCTURE_TYPE_FENCE_DESC;
    assert_eq!(
        alloc(&raw const desc, &raw mut pointer),
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT
    );
    assert!(pointer.is_null());
}

#[test]
fn freeing_an_invalid_pointer_is_an_error() {
    let context = Context::new();
    let other = Context::new();
    let memory = context.alloc(Kind::Shared, 4096);
    let free = |context: &Context, pointer: Memory| ze!(zeMemFree(context.0, pointer));
    let invalid = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
    let mut local = 0_u64;
    assert_eq!(
        free(&context, unsafe { memory.byte_add(64) }),
        invalid,
        "interior"
    );
    assert_eq!(
        free(&context, (&raw mut local).cast()),
        invalid,
        "host memory"
    );
    assert_eq!(free(&other, memory), invalid, "another context's");
    assert_eq!(
        free(&context, ptr::null_mut()),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER
    );
    assert_eq!(
        range(&context, memory),
        Ok((memory as usize, 4096)),
        "nothing changed"
    );
    context.free(memory);
    assert_eq!(free(&context, memory), invalid, "twice");
}

#[test]
fn allocations_belong_to_their_context() {
    let context = Context::new();
    let other = Context::new();
    let memory = context.alloc(Kind::Device, 100);
    assert_eq!(properties(&other, memory).0, sys::ZE_MEMORY_TYPE_UNKNOWN);
    assert_eq!(range(&other, memory), Err(ADDRESS_NOT_FOUND));
    let local = 0_u64;
    assert_eq!(
        properties(&context, (&raw const local).cast()).0,
        sys::ZE_MEMORY_TYPE_UNKNOWN
    );
    context.free(memory);
}

#[test]
fn address_range_fills_the_requested_values() {
    let context = Context::new();
    let memory = context.alloc(Kind::Host, 100);
    let (mut base, mut size) = (ptr::null_mut(), 0);
    ok!(zeMemGetAddressRange(
        context.0,
        memory,
        &raw mut base,
        ptr::null_mut()
    ));
    ok!(zeMemGetAddressRange(
        context.0,
        memory,
        ptr::null_mut(),
        &raw mut size
    ));
    assert_eq!((base, size), (memory, 100));
    assert_eq!(
        ze!(zeMemGetAddressRange(
            context.0,
            ptr::null(),
            &raw mut base,
            &raw mut size
        )),
        sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER
    );
    context.free(memory);
}

#[test]
fn free_policies() {
    let context = Context::new();
    for policy in [0, 1, 2] {
        let memory = context.alloc(Kind::Device, 8 * MIB);
        let list = context.immediate(0);
        common::fill(list, memory, &[9], 8 * MIB, common::NONE, &[]);
        let desc = sys::ze_memory_free_ext_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
            freePolicy: policy,
            ..Default::default()
        };
        ok!(zeMemFreeExt(context.0, &raw const desc, memory));
        assert_eq!(range(&context, memory), Err(ADDRESS_NOT_FOUND));
        common::finish(&context, list);
        common::destroy(list);
    }
    let memory = context.alloc(Kind::Device, 64);
    let mut desc = sys::ze_memory_free_ext_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
        freePolicy: 4,
        ..Default::default()
    };
    assert_eq!(
        ze!(zeMemFreeExt(context.0, &raw const desc, memory)),
        sys::ZE_RESULT_ERROR_INVALID_ENUMERATION
    );
    desc.freePolicy = 1;
    ok!(zeMemFreeExt(context.0, &raw const desc, memory));
}

#[test]
fn a_blocking_free_waits_for_the_work() {
    let context = Context::new();
    let pool = context.pool(2, false);
    let (to, from) = (
        context.alloc(Kind::Device, 4096),
        context.alloc(Kind::Device, 4096),
    );
    let list = context.immediate(0);
    common::copy(list, to, from, 4096, pool.events[1], &pool.events[..1]);
    let (address, owner, done) = (to as usize, context.0 as usize, pool.events[1] as usize);
    let freeing = thread::spawn(move || {
        let desc = sys::ze_memory_free_ext_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
            freePolicy: 1,
            ..Default::default()
        };
        ok!(zeMemFreeExt(owner as _, &raw const desc, address as _));
        common::is_set(done as _)
    });
    thread::sleep(std::time::Duration::from_millis(50));
    assert!(!freeing.is_finished(), "the copy still waits for its event");
    ok!(zeEventHostSignal(pool.events[0]));
    // The pins are dropped before the event is set, so the event may be set a moment later.
    freeing.join().unwrap();
    common::wait(pool.events[1]);
    context.free(from);
    common::destroy(list);
}

#[test]
fn a_deferred_free_does_not_wait() {
    let context = Context::new();
    let pool = context.pool(2, false);
    let [to, from] = [(); 2].map(|()| context.alloc(Kind::Device, 4096));
    let list = context.immediate(0);
    common::copy(list, to, from, 4096, pool.events[1], &pool.events[..1]);
    let desc = sys::ze_memory_free_ext_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
        freePolicy: 2,
        ..Default::default()
    };
    ok!(zeMemFreeExt(context.0, &raw const desc, to));
    assert!(!common::is_set(pool.events[1]));
    ok!(zeEventHostSignal(pool.events[0]));
    common::wait(pool.events[1]);
    context.free(from);
    common::destroy(list);
}

#[test]
fn threads_allocate_and_free_each_others_memory() {
    let context = Context::new();
    let (sender, receiver) = std::sync::mpsc::channel::<usize>();
    thread::scope(|scope| {
        for _ in 0..4 {
            let sender = sender.clone();
            let context = &context;
            scope.spawn(move || {
                for size in 1..5_000 {
                    let memory = context.alloc(Kind::Shared, size);
                    bytes_mut(memory, size).fill(size as u8);
                    sender.send(memory as usize).unwrap();
                }
            });
        }
        drop(sender);
        for address in receiver {
            let (base, size) = range(&context, address as *const c_void).unwrap();
            assert_eq!(base, address);
            assert!(
                bytes(address as Memory, size)
                    .iter()
                    .all(|byte| *byte == size as u8)
            );
            context.free(address as Memory);
        }
    });
}

#[test]
fn residency_and_advice_are_accepted_after_a_check() {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 4096);
    let list = context.immediate(0);
    ok!(zeContextMakeMemoryResident(
        context.0,
        device(),
        memory,
        4096
    ));
    ok!(zeContextEvictMemory(context.0, device(), memory, 4096));
    ok!(zeCommandListAppendMemoryPrefetch(list, memory, 4096));
    ok!(zeCommandListAppendMemAdvise(
        list,
        device(),
        memory,
        4096,
        sys::ZE_MEMORY_ADVICE_SET_READ_MOSTLY,
    ));
    let too_long = sys::ZE_RESULT_ERROR_INVALID_SIZE;
    assert_eq!(
        ze!(zeContextMakeMemoryResident(
            context.0,
            device(),
            memory,
            4097
        )),
        too_long
    );
    assert_eq!(
        ze!(zeCommandListAppendMemoryPrefetch(list, memory, 4097)),
        too_long
    );
    assert_eq!(
        ze!(zeCommandListAppendMemAdvise(
            list,
            device(),
            memory,
            1,
            sys::ze_memory_advice_t(99)
        )),
        sys::ZE_RESULT_ERROR_INVALID_ENUMERATION
    );
    common::destroy(list);
    context.free(memory);
}
