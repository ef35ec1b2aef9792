//! Functions of the program in command lists, and the other functions of the core since 1.14: copies, fills and lists with a chain of
//! extensions, and the synchronisation of a device.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, missing_docs)]

#[macro_use]
mod common;

use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use common::{Context, Event, IN_ORDER_LIST, Kind, List, NONE, OK, Result, array, bytes};
use level_zero_sys as sys;
use sys::extensions::ze_host_function_callback_t as Callback;

type AppendHostFunction = unsafe extern "C" fn(
    List,
    Callback,
    *mut c_void,
    *const c_void,
    Event,
    u32,
    *mut Event,
) -> Result;
type CopyWith = unsafe extern "C" fn(
    List,
    *mut c_void,
    *const c_void,
    usize,
    *const c_void,
    Event,
    u32,
    *mut Event,
) -> Result;
type FillWith = unsafe extern "C" fn(
    List,
    *mut c_void,
    *const c_void,
    usize,
    usize,
    *const c_void,
    Event,
    u32,
    *mut Event,
) -> Result;
type ListsWith =
    unsafe extern "C" fn(List, u32, *mut List, *const c_void, Event, u32, *mut Event) -> Result;
type Synchronize = unsafe extern "C" fn(sys::ze_device_handle_t) -> Result;

/// An extension that no function takes.
fn unknown() -> sys::Head {
    sys::Head {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        next: ptr::null_mut(),
    }
}

/// What a host function does: waits, then notes what it finds in the memory.
struct Notes {
    memory: *const u8,
    delay: Duration,
    found: Mutex<Vec<u8>>,
}

impl Notes {
    fn new(memory: *const c_void, milliseconds: u64) -> Self {
        Self {
            memory: memory.cast(),
            delay: Duration::from_millis(milliseconds),
            found: Mutex::default(),
        }
    }

    fn append(&self, list: List, signal: Event, waits: &[Event]) -> Result {
        let data = ptr::from_ref(self).cast_mut().cast();
        let append = host_function().unwrap();
        let count = waits.len() as u32;
        unsafe {
            append(
                list,
                Some(note),
                data,
                ptr::null(),
                signal,
                count,
                array(waits),
            )
        }
    }
}

unsafe extern "C" fn note(notes: *mut c_void) {
    let notes = unsafe { &*notes.cast::<Notes>() };
    thread::sleep(notes.delay);
    let found = unsafe { notes.memory.read_volatile() };
    notes.found.lock().unwrap().push(found);
}

/// `None` behind an old loader.
fn host_function() -> Option<AppendHostFunction> {
    common::extension(c"zeCommandListAppendHostFunction")
}

#[test]
fn a_host_function_runs_at_its_place_in_a_list() {
    if host_function().is_none() {
        return;
    }
    let context = Context::new();
    for flags in common::queue_orders() {
        let list = context.immediate(*flags);
        let memory = context.alloc(Kind::Host, 1 << 22);
        let pool = context.pool(40, false);
        let notes = Notes::new(memory, 1);
        for round in 0..20_u8 {
            let [filled, noted] = [0, 1].map(|part| pool.events[usize::from(round) * 2 + part]);
            let before = if round == 0 {
                vec![]
            } else {
                vec![pool.events[usize::from(round) * 2 - 1]]
            };
            common::fill(list, memory, &[round], 1 << 22, filled, &before);
            assert_eq!(notes.append(list, noted, &[filled]), OK);
        }
        common::wait(pool.events[39]);
        assert_eq!(*notes.found.lock().unwrap(), Vec::from_iter(0..20));
        common::destroy(list);
        context.free(memory);
    }
}

#[test]
fn a_regular_list_calls_its_function_at_each_execution() {
    if host_function().is_none() || !common::knows_newer_flags() {
        return;
    }
    let context = Context::new();
    let (list, queue) = (context.list(IN_ORDER_LIST), context.queue());
    let memory = context.alloc(Kind::Shared, 64);
    let notes = Notes::new(memory, 0);
    common::fill(list, memory, &[7], 64, NONE, &[]);
    assert_eq!(notes.append(list, NONE, &[]), OK);
    common::fill(list, memory, &[9], 64, NONE, &[]);
    assert_eq!(notes.append(list, NONE, &[]), OK);
    ok!(zeCommandListClose(list));
    assert!(notes.found.lock().unwrap().is_empty());
    for _ in 0..50 {
        let mut lists = [list];
        ok!(zeCommandQueueExecuteCommandLists(
            queue,
            1,
            lists.as_mut_ptr(),
            ptr::null_mut()
        ));
    }
    ok!(zeCommandQueueSynchronize(queue, u64::MAX));
    assert_eq!(*notes.found.lock().unwrap(), [7, 9].repeat(50));
    common::destroy(list);
    ok!(zeCommandQueueDestroy(queue));
    context.free(memory);
}

/// The program may hold a lock in the append that its function takes.
#[test]
fn a_host_function_does_not_run_in_the_append() {
    let Some(append) = host_function() else {
        return;
    };
    let context = Context::new();
    let list = context.immediate(0);
    let memory = context.alloc(Kind::Host, 64);
    let notes = Notes::new(memory, 0);
    let held = notes.found.lock().unwrap();
    assert_eq!(notes.append(list, NONE, &[]), OK);
    thread::sleep(Duration::from_millis(20));
    assert!(held.is_empty());
    drop(held);
    common::finish(&context, list);
    assert_eq!(notes.found.lock().unwrap().len(), 1);

    let data = ptr::from_ref(&notes).cast_mut().cast();
    let unknown = unknown();
    let extended = ptr::from_ref(&unknown).cast();
    let refused = [
        (
            None,
            ptr::null(),
            0,
            sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
        ),
        (
            Some(note as _),
            extended,
            0,
            sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
        ),
        (
            Some(note as _),
            ptr::null(),
            1,
            sys::ZE_RESULT_ERROR_INVALID_SIZE,
        ),
    ];
    for (function, next, waits, expected) in refused {
        let result = unsafe { append(list, function, data, next, NONE, waits, ptr::null_mut()) };
        assert_eq!(result, expected);
    }
    common::finish(&context, list);
    assert_eq!(notes.found.lock().unwrap().len(), 1);
    common::destroy(list);
    context.free(memory);
}

/// Its queues and its immediate lists, also those of a thread that is in the middle of its appends.
#[test]
fn a_device_is_synchronised_with_all_that_was_submitted() {
    let Some(synchronize) = common::extension::<Synchronize>(c"zeDeviceSynchronize") else {
        return;
    };
    let context = Context::new();
    let memory = context.alloc(Kind::Host, 64);
    let notes = Notes::new(memory, 20);
    let (list, queue) = (context.immediate(0), context.queue());
    let recorded = context.list(0);
    assert_eq!(notes.append(list, NONE, &[]), OK);
    assert_eq!(notes.append(recorded, NONE, &[]), OK);
    ok!(zeCommandListClose(recorded));
    let mut lists = [recorded];
    ok!(zeCommandQueueExecuteCommandLists(
        queue,
        1,
        lists.as_mut_ptr(),
        ptr::null_mut()
    ));
    assert_eq!(unsafe { synchronize(common::device()) }, OK);
    assert_eq!(notes.found.lock().unwrap().len(), 2);
    assert_eq!(
        unsafe { synchronize(ptr::null_mut()) },
        sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE
    );
    common::destroy(list);
    common::destroy(recorded);
    ok!(zeCommandQueueDestroy(queue));
    context.free(memory);
}

#[test]
fn copies_fills_and_lists_take_a_chain_that_is_empty() {
    let Some(copy) = common::extension::<CopyWith>(c"zeCommandListAppendMemoryCopyWithParameters")
    else {
        return;
    };
    let fill: FillWith = common::extension(c"zeCommandListAppendMemoryFillWithParameters").unwrap();
    let append: ListsWith =
        common::extension(c"zeCommandListImmediateAppendCommandListsWithParameters").unwrap();
    let context = Context::new();
    let (list, recorded) = (context.immediate(0), context.list(0));
    let unknown = unknown();
    let memory = context.alloc(Kind::Host, 64);
    let other = memory.wrapping_byte_add(32);
    let pool = context.pool(2, false);
    let [filled, done] = [pool.events[0], pool.events[1]];
    for (next, expected) in [
        (
            ptr::from_ref(&unknown).cast(),
            sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
        ),
        (ptr::null::<c_void>(), OK),
    ] {
        let tile = [5_u8; 4];
        let mut lists = [recorded];
        let none = ptr::null_mut();
        let recorded_both = unsafe {
            let tile = tile.as_ptr().cast();
            let fill = fill(recorded, memory, tile, 4, 32, next, filled, 0, none);
            let waits = array(&[filled]);
            [
                fill,
                copy(recorded, other, memory, 32, next, NONE, 1, waits),
            ]
        };
        assert_eq!(recorded_both, [expected; 2]);
        if expected == OK {
            ok!(zeCommandListClose(recorded));
        }
        let appended = unsafe { append(list, 1, lists.as_mut_ptr(), next, done, 0, none) };
        assert_eq!(appended, expected);
    }
    common::wait(done);
    assert_eq!(bytes(memory, 64), [5; 64]);
    common::destroy(list);
    common::destroy(recorded);
    context.free(memory);
}
