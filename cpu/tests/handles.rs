//! Invalid handles: each is an error, never a crash.
//!
//! A loader dereferences handles before the runtime sees them, so these tests need the runtime itself.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;

use std::ffi::c_void;
use std::ptr;
use std::thread;

use common::{Context, Kind, NONE, OK, Result, device, direct, driver};
use level_zero_sys as sys;

const NULL: Result = sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
const INVALID: Result = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;

/// Invalid handles: an address, small and large numbers, and handles of every other kind.
fn strangers(context: &Context, own: usize) -> Vec<usize> {
    static LOCAL: u64 = 0;
    let mut list = vec![
        1,
        usize::MAX,
        (&raw const LOCAL) as usize,
        0x5A00_0000_0000_0000,
        own ^ 1 << 23,
        own ^ 1 << 24,
        own ^ 1 << 63,
        driver() as usize,
        device() as usize,
        context.0 as usize,
    ];
    list.retain(|stranger| *stranger != own);
    list
}

/// Calls `call` with each kind of invalid handle.
fn refuses(context: &Context, own: usize, call: impl Fn(usize) -> Result) {
    assert_eq!(call(0), NULL);
    for stranger in strangers(context, own) {
        assert_eq!(call(stranger), INVALID, "{stranger:#x}");
    }
}

#[test]
fn every_kind_of_handle_is_checked() {
    if !direct() {
        return;
    }
    let context = Context::new();
    let pool = context.pool(1, true);
    let event = pool.events[0] as usize;
    refuses(&context, event, |bad| ze!(zeEventHostSignal(bad as _)));
    refuses(&context, event, |bad| ze!(zeEventHostReset(bad as _)));
    refuses(&context, event, |bad| ze!(zeEventQueryStatus(bad as _)));
    refuses(&context, event, |bad| {
        ze!(zeEventHostSynchronize(bad as _, 0))
    });
    refuses(&context, event, |bad| ze!(zeEventDestroy(bad as _)));
    refuses(&context, event, |bad| {
        let mut result = sys::ze_kernel_timestamp_result_t::default();
        ze!(zeEventQueryKernelTimestamp(bad as _, &raw mut result))
    });
    refuses(&context, pool.pool as usize, |bad| {
        ze!(zeEventPoolDestroy(bad as _))
    });

    let list = context.immediate(0);
    refuses(&context, list as usize, |bad| {
        ze!(zeCommandListAppendBarrier(
            bad as _,
            NONE,
            0,
            ptr::null_mut()
        ))
    });
    refuses(&context, list as usize, |bad| {
        ze!(zeCommandListAppendMemoryCopy(
            bad as _,
            8 as _,
            8 as _,
            0,
            NONE,
            0,
            ptr::null_mut()
        ))
    });
    refuses(&context, list as usize, |bad| {
        ze!(zeCommandListDestroy(bad as _))
    });
    refuses(&context, list as usize, |bad| {
        ze!(zeCommandListClose(bad as _))
    });
    common::destroy(list);

    let queue = context.queue();
    refuses(&context, queue as usize, |bad| {
        ze!(zeCommandQueueSynchronize(bad as _, 0))
    });
    refuses(&context, queue as usize, |bad| {
        ze!(zeCommandQueueDestroy(bad as _))
    });
    let desc = sys::ze_fence_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_FENCE_DESC,
        ..Default::default()
    };
    let mut fence = ptr::null_mut();
    ok!(zeFenceCreate(queue, &raw const desc, &raw mut fence));
    refuses(&context, fence as usize, |bad| {
        ze!(zeFenceHostSynchronize(bad as _, 0))
    });
    refuses(&context, fence as usize, |bad| {
        ze!(zeFenceDestroy(bad as _))
    });
    ok!(zeFenceDestroy(fence));
    ok!(zeCommandQueueDestroy(queue));

    refuses(&context, device() as usize, |bad| {
        ze!(zeDeviceGetStatus(bad as _))
    });
    refuses(&context, context.0 as usize, |bad| {
        ze!(zeContextGetStatus(bad as _))
    });
    refuses(&context, context.0 as usize, |bad| {
        ze!(zeMemFree(bad as _, 64 as _))
    });
    refuses(&context, driver() as usize, |bad| {
        let mut version = sys::ze_api_version_t(0);
        ze!(zeDriverGetApiVersion(bad as _, &raw mut version))
    });
    assert!(context.try_alloc(Kind::Device, 64, 0).is_ok_and(|memory| {
        context.free(memory);
        true
    }));
}

#[test]
fn destroyed_handles_stay_dead() {
    if !direct() {
        return;
    }
    let context = Context::new();
    let pool = context.pool(1, false);
    let list = context.immediate(0);
    common::destroy(list);
    assert_eq!(ze!(zeCommandListDestroy(list)), INVALID);
    // The slot is reused, the old handle stays invalid.
    let again = context.immediate(0);
    assert_ne!(list, again);
    assert_eq!(
        ze!(zeCommandListAppendBarrier(list, NONE, 0, ptr::null_mut())),
        INVALID
    );
    common::destroy(again);
    let dead = {
        let other = context.pool(1, false);
        other.events[0]
    };
    let list = context.immediate(0);
    let invalid = sys::ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    let mut waits = [pool.events[0], dead];
    assert_eq!(
        ze!(zeCommandListAppendBarrier(
            list,
            NONE,
            2,
            waits.as_mut_ptr()
        )),
        invalid
    );
    assert_eq!(
        ze!(zeCommandListAppendBarrier(list, dead, 0, ptr::null_mut())),
        invalid
    );
    assert_eq!(ze!(zeCommandListAppendSignalEvent(list, dead)), invalid);
    assert_eq!(ze!(zeCommandListAppendSignalEvent(list, NONE)), NULL);
    common::destroy(list);
    let gone = Context::new();
    let handle = gone.0;
    drop(gone);
    assert_eq!(ze!(zeContextDestroy(handle)), INVALID);
}

#[test]
fn null_pointers_are_refused() {
    let context = Context::new();
    let null = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    assert_eq!(ze!(zeDriverGet(ptr::null_mut(), ptr::null_mut())), null);
    assert_eq!(
        ze!(zeDeviceGet(driver(), ptr::null_mut(), ptr::null_mut())),
        null
    );
    assert_eq!(ze!(zeDeviceGetProperties(device(), ptr::null_mut())), null);
    assert_eq!(
        ze!(zeContextCreate(driver(), ptr::null(), ptr::null_mut())),
        null
    );
    assert_eq!(
        ze!(zeEventPoolCreate(
            context.0,
            ptr::null(),
            0,
            ptr::null_mut(),
            ptr::null_mut()
        )),
        null
    );
    let list = context.immediate(0);
    let mut byte = 0_u8;
    let place: *mut c_void = (&raw mut byte).cast();
    let copy = |to: *mut c_void, from: *const c_void| {
        ze!(zeCommandListAppendMemoryCopy(
            list,
            to,
            from,
            1,
            NONE,
            0,
            ptr::null_mut()
        ))
    };
    assert_eq!(copy(ptr::null_mut(), place), null);
    assert_eq!(copy(place, ptr::null()), null);
    let fill = |to: *mut c_void, pattern: *const c_void| {
        ze!(zeCommandListAppendMemoryFill(
            list,
            to,
            pattern,
            1,
            1,
            NONE,
            0,
            ptr::null_mut()
        ))
    };
    assert_eq!(fill(ptr::null_mut(), place), null);
    assert_eq!(fill(place, ptr::null()), null);
    assert_eq!(
        ze!(zeCommandListAppendBarrier(list, NONE, 3, ptr::null_mut())),
        sys::ZE_RESULT_ERROR_INVALID_SIZE
    );
    common::destroy(list);
}

#[test]
fn wrong_structures_and_flags_are_refused() {
    let context = Context::new();
    let mut list = ptr::null_mut();
    let mut create = |desc: &sys::ze_command_queue_desc_t| {
        ze!(zeCommandListCreateImmediate(
            context.0,
            device(),
            ptr::from_ref(desc),
            &raw mut list,
        ))
    };
    let mut desc = common::queue_desc(0);
    desc.stype = sys::ZE_STRUCTURE_TYPE_EVENT_DESC;
    assert_eq!(create(&desc), INVALID);
    desc = common::queue_desc(1 << 30);
    assert_eq!(create(&desc), sys::ZE_RESULT_ERROR_INVALID_ENUMERATION);
    desc = common::queue_desc(0);
    desc.mode = sys::ze_command_queue_mode_t(77);
    assert_eq!(create(&desc), sys::ZE_RESULT_ERROR_INVALID_ENUMERATION);
    desc = common::queue_desc(0);
    desc.priority = sys::ze_command_queue_priority_t(77);
    assert_eq!(create(&desc), sys::ZE_RESULT_ERROR_INVALID_ENUMERATION);
    desc = common::queue_desc(0);
    desc.ordinal = 2;
    assert_eq!(create(&desc), INVALID);
    desc = common::queue_desc(0);
    desc.index = 1000;
    assert_eq!(create(&desc), INVALID);
    assert!(list.is_null());
}

#[test]
fn handles_survive_many_threads() {
    let context = Context::new();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let pool = context.pool(8, false);
                    let list = context.immediate(0);
                    for event in &pool.events {
                        ok!(zeCommandListAppendSignalEvent(list, *event));
                        assert_eq!(ze!(zeEventHostSynchronize(*event, u64::MAX)), OK);
                    }
                    common::destroy(list);
                }
            });
        }
    });
}
