//! Counter-based events without a pool, which processes may share.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, missing_docs)]

#[macro_use]
mod common;
#[path = "common/process.rs"]
mod process;

use std::ffi::c_void;
use std::ptr;
use std::thread;
use std::time::Duration;

use common::{Context, Event, Kind, List, Memory, NONE, OK, Result, SECOND, device};
use level_zero_sys as sys;
use level_zero_sys::extensions;

type Handle = extensions::ze_ipc_event_counter_based_handle_t;
type ContextHandle = sys::ze_context_handle_t;
type Create = unsafe extern "C" fn(
    ContextHandle,
    sys::ze_device_handle_t,
    *const extensions::ze_event_counter_based_desc_t,
    *mut Event,
) -> Result;
type Get = unsafe extern "C" fn(Event, *mut Handle) -> Result;
type Open = unsafe extern "C" fn(ContextHandle, Handle, *mut Event) -> Result;
type Close = unsafe extern "C" fn(Event) -> Result;

const INVALID: Result = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
const IPC: u32 = extensions::ZE_EVENT_COUNTER_BASED_FLAG_IPC;
const TIMED: u32 = extensions::ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP;
/// More than the slots of a board.
const MANY: usize = 300;

fn create(context: &Context, flags: u32) -> Event {
    try_create(context, flags, ptr::null()).unwrap()
}

/// With `next` as the chain.
fn try_create(
    context: &Context,
    flags: u32,
    next: *const c_void,
) -> std::result::Result<Event, Result> {
    let create: Create = unsafe { common::newer(c"zeEventCounterBasedCreate") };
    let desc = extensions::ze_event_counter_based_desc_t {
        stype: extensions::ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC,
        pNext: next,
        flags: flags | 1,
        signal: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
        wait: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
    };
    let mut event = ptr::null_mut();
    match unsafe { create(context.0, device(), &raw const desc, &raw mut event) } {
        OK => Ok(event),
        error => Err(error),
    }
}

fn try_export(event: Event) -> std::result::Result<Handle, Result> {
    let get: Get = unsafe { common::newer(c"zeEventCounterBasedGetIpcHandle") };
    let mut handle = Handle { data: [0; 64] };
    match unsafe { get(event, &raw mut handle) } {
        OK => Ok(handle),
        error => Err(error),
    }
}

fn export(event: Event) -> Handle {
    try_export(event).unwrap()
}

fn open(context: &Context, handle: Handle) -> std::result::Result<Event, Result> {
    let open: Open = unsafe { common::newer(c"zeEventCounterBasedOpenIpcHandle") };
    let mut event = ptr::null_mut();
    match unsafe { open(context.0, handle, &raw mut event) } {
        OK => Ok(event),
        error => Err(error),
    }
}

fn close(event: Event) -> Result {
    let close: Close = unsafe { common::newer(c"zeEventCounterBasedCloseIpcHandle") };
    unsafe { close(event) }
}

/// An in-order list, where the layer allows one.
fn list(context: &Context) -> List {
    context.immediate(*common::queue_orders().last().unwrap())
}

#[test]
fn an_opened_event_is_set_by_the_command_that_was_submitted_last() {
    let context = Context::new();
    let gates = context.pool(2, false);
    let event = create(&context, IPC);
    let before = open(&context, export(event)).unwrap();
    assert!(common::is_set(before), "nothing was submitted");
    let list = list(&context);
    let memory = context.alloc(Kind::Host, 64);
    let mut opened = Vec::new();
    for gate in &gates.events {
        common::fill(list, memory, &[1], 64, event, &[*gate]);
        opened.push(open(&context, export(event)).unwrap());
    }
    assert!(!common::is_set(opened[0]) && !common::is_set(opened[1]));
    ok!(zeEventHostSignal(gates.events[0]));
    common::wait(opened[0]);
    assert!(!common::is_set(opened[1]) && !common::is_set(event));
    ok!(zeEventHostSignal(gates.events[1]));
    common::wait(opened[1]);
    common::wait(event);
    for event in opened.into_iter().chain([before]) {
        assert_eq!(close(event), OK);
    }
    ok!(zeEventDestroy(event));
    common::destroy(list);
    context.free(memory);
}

#[test]
fn commands_wait_for_an_opened_event_and_signal_it_for_themselves() {
    let context = Context::new();
    let event = create(&context, IPC | TIMED);
    let (first, second) = (list(&context), list(&context));
    let (source, target) = (
        context.alloc(Kind::Host, 4096),
        context.alloc(Kind::Host, 4096),
    );
    for round in 0..MANY {
        let value = round as u8 | 1;
        let gate = context.pool(1, false);
        common::fill(first, source, &[value], 4096, event, &gate.events);
        let opened = open(&context, export(event)).unwrap();
        common::copy(second, target, source, 4096, NONE, &[opened]);
        ok!(zeEventHostSignal(gate.events[0]));
        common::finish(&context, second);
        assert!(common::bytes(target, 4096).iter().all(|it| *it == value));
        let mut times = sys::ze_kernel_timestamp_result_t::default();
        ok!(zeEventQueryKernelTimestamp(opened, &raw mut times));
        assert!(times.global.kernelStart > 0);
        // A command of this side's has no effect on the other's event.
        let gate = context.pool(1, false);
        common::fill(second, target, &[0], 64, opened, &gate.events);
        assert!(!common::is_set(opened) && common::is_set(event));
        ok!(zeEventHostSignal(gate.events[0]));
        common::wait(opened);
        assert_eq!(close(opened), OK);
    }
    ok!(zeEventDestroy(event));
    for list in [first, second] {
        common::destroy(list);
    }
    context.free(source);
    context.free(target);
}

/// Appends a query of the times of `event`.
fn query(list: List, mut event: Event, to: Memory) {
    ok!(zeCommandListAppendQueryKernelTimestamps(
        list,
        1,
        &raw mut event,
        to,
        ptr::null(),
        NONE,
        0,
        ptr::null_mut(),
    ));
}

/// Executes a regular list.
fn execute(queue: sys::ze_command_queue_handle_t, mut list: List) {
    let fence = ptr::null_mut();
    ok!(zeCommandListClose(list));
    ok!(zeCommandQueueExecuteCommandLists(
        queue,
        1,
        &raw mut list,
        fence
    ));
}

#[test]
fn a_query_is_about_the_command_that_was_submitted_last() {
    let context = Context::new();
    let event = create(&context, TIMED);
    let memory = context.alloc(Kind::Host, 64);
    let queue = context.queue();
    for recorded in [false, true] {
        let gates = context.pool(2, false);
        let list = if recorded {
            context.list(0)
        } else {
            context.immediate(0)
        };
        common::bytes_mut(memory, 16).fill(0);
        let barrier = |list, mut gate: Event| {
            ok!(zeCommandListAppendBarrier(list, event, 1, &raw mut gate));
        };
        barrier(list, gates.events[0]);
        query(list, event, memory);
        if recorded {
            execute(queue, list);
        }
        // It is in flight when a later command is submitted, which signals the event again.
        let later = context.immediate(0);
        barrier(later, gates.events[1]);
        ok!(zeEventHostSignal(gates.events[0]));
        if recorded {
            ok!(zeCommandQueueSynchronize(queue, 60 * SECOND));
        } else {
            common::finish(&context, list);
        }
        let read = u64::from_ne_bytes(common::bytes(memory, 8).try_into().unwrap());
        assert_ne!(read, 0);
        ok!(zeEventHostSignal(gates.events[1]));
        common::wait(event);
        let mut times = sys::ze_kernel_timestamp_result_t::default();
        ok!(zeEventQueryKernelTimestamp(event, &raw mut times));
        assert!(read < times.global.kernelStart);
        [list, later].into_iter().for_each(common::destroy);
    }
    ok!(zeCommandQueueDestroy(queue));
    ok!(zeEventDestroy(event));
    context.free(memory);
}

#[test]
fn a_query_of_what_is_not_set_is_an_error_of_its_queue() {
    let context = Context::new();
    let pool = context.pool(1, true);
    let memory = context.alloc(Kind::Host, 64);
    let (queue, list) = (context.queue(), context.list(0));
    query(list, pool.events[0], memory);
    execute(queue, list);
    assert_eq!(
        ze!(zeCommandQueueSynchronize(queue, 60 * SECOND)),
        sys::ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT
    );
    ok!(zeCommandQueueSynchronize(queue, 60 * SECOND));
    common::destroy(list);
    ok!(zeCommandQueueDestroy(queue));
    context.free(memory);
}

#[test]
fn a_handle_is_valid_as_long_as_the_event() {
    let context = Context::new();
    let event = create(&context, IPC);
    let list = list(&context);
    let handles: Vec<Handle> = (0..MANY)
        .map(|_| {
            ok!(zeCommandListAppendSignalEvent(list, event));
            export(event)
        })
        .collect();
    for handle in &handles {
        let opened = open(&context, *handle).unwrap();
        common::wait(opened);
        assert_eq!(close(opened), OK);
    }
    common::destroy(list);
    ok!(zeEventDestroy(event));
    for handle in handles {
        assert_eq!(open(&context, handle).err(), Some(INVALID));
    }
}

#[test]
fn other_events_and_handles_are_refused() {
    let context = Context::new();
    let (plain, shared) = (create(&context, 0), create(&context, IPC));
    let pool = context.pool(1, false);
    assert_eq!(try_export(plain).err(), Some(INVALID));
    assert_eq!(try_export(pool.events[0]).err(), Some(INVALID));
    assert_eq!(close(shared), INVALID);
    let nothing = Handle { data: [0; 64] };
    assert_eq!(open(&context, nothing).err(), Some(INVALID));
    // The number of the slot is in the third word.
    for (at, value) in [(16, 126_u8), (17, 1), (20, 1), (23, 0x80)] {
        let mut forged = export(shared);
        forged.data[at] = value as _;
        assert_eq!(open(&context, forged).err(), Some(INVALID), "{at}");
    }
    ok!(zeEventDestroy(plain));
    ok!(zeEventDestroy(shared));
}

#[test]
fn another_process_waits() {
    let context = Context::new();
    let event = create(&context, IPC);
    let gate = context.pool(1, false);
    let list = list(&context);
    let memory = context.alloc(Kind::Host, 64);
    common::fill(list, memory, &[1], 64, event, &gate.events);
    let digits = |byte: &std::ffi::c_char| format!("{:02x}", *byte as u8);
    let handle: String = export(event).data.iter().map(digits).collect();
    let start = gate.events[0] as usize;
    let starter = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        ok!(zeEventHostSignal(start as Event));
    });
    process::alone_with("the_other_process", &[("ZEUSM_TEST_EVENT", &handle)]);
    starter.join().unwrap();
    common::wait(event);
    ok!(zeEventDestroy(event));
    common::destroy(list);
    context.free(memory);
}

#[test]
#[ignore = "the other side of `another_process_waits`"]
fn the_other_process() {
    let digits = std::env::var("ZEUSM_TEST_EVENT").unwrap();
    let mut handle = Handle { data: [0; 64] };
    for (index, place) in handle.data.iter_mut().enumerate() {
        *place = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).unwrap() as _;
    }
    let context = Context::new();
    let event = open(&context, handle).unwrap();
    common::wait(event);
    assert_eq!(close(event), OK);
}

/// Such an event would not depend on its counter.
#[test]
fn counters_in_memory_of_the_program_are_refused() {
    /// The longest of the structures.
    #[repr(C)]
    struct Extension {
        stype: sys::ze_structure_type_t,
        next: *const c_void,
        fields: [u64; 3],
    }
    let context = Context::new();
    let create = |stype| {
        let extension = Extension {
            stype,
            next: ptr::null(),
            fields: [0; 3],
        };
        try_create(&context, 0, (&raw const extension).cast())
    };
    for stype in [
        extensions::ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_EXTERNAL_SYNC_ALLOCATION_DESC,
        extensions::ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_EXTERNAL_AGGREGATE_STORAGE_DESC,
    ] {
        let unsupported = Err(sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
        assert_eq!(create(stype), unsupported, "{stype:?}");
    }
    let event = create(extensions::ZE_STRUCTURE_TYPE_EVENT_SYNC_MODE_DESC).unwrap();
    ok!(zeEventDestroy(event));
}
