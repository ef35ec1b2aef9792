//! Event pools that processes share.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, missing_docs)]

#[macro_use]
mod common;
#[path = "common/forks.rs"]
mod forks;
#[path = "common/process.rs"]
mod process;
#[allow(dead_code)]
#[path = "common/seccomp.rs"]
mod seccomp;

use std::ffi::c_char;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use common::{Context, Event, Kind, NONE, OK, SECOND};
use level_zero_sys as sys;

type Handle = sys::ze_ipc_event_pool_handle_t;
type PoolHandle = sys::ze_event_pool_handle_t;

const COUNT: u32 = 4;
const INVALID: sys::ze_result_t = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
const SHARED: u32 = sys::ZE_EVENT_POOL_FLAG_IPC.0 | sys::ZE_EVENT_POOL_FLAG_HOST_VISIBLE.0;
const TIMED: u32 = SHARED | sys::ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP.0;

fn create(context: &Context, flags: u32) -> PoolHandle {
    let desc = sys::ze_event_pool_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
        count: COUNT,
        flags,
        ..Default::default()
    };
    let mut pool = ptr::null_mut();
    ok!(zeEventPoolCreate(
        context.0,
        &raw const desc,
        0,
        ptr::null_mut(),
        &raw mut pool
    ));
    pool
}

fn export(pool: PoolHandle) -> Handle {
    let mut handle = Handle::default();
    ok!(zeEventPoolGetIpcHandle(pool, &raw mut handle));
    handle
}

fn open(context: &Context, handle: Handle) -> Result<PoolHandle, sys::ze_result_t> {
    let mut pool = ptr::null_mut();
    match ze!(zeEventPoolOpenIpcHandle(context.0, handle, &raw mut pool)) {
        OK => Ok(pool),
        error => Err(error),
    }
}

fn event(pool: PoolHandle, index: u32) -> Event {
    let desc = sys::ze_event_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_EVENT_DESC,
        index,
        signal: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
        wait: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
        ..Default::default()
    };
    let mut event = ptr::null_mut();
    ok!(zeEventCreate(pool, &raw const desc, &raw mut event));
    event
}

/// A pool and the same pool opened by its handle, each with its events.
struct Both {
    context: Context,
    pools: [PoolHandle; 2],
    events: [Vec<Event>; 2],
}

impl Both {
    fn new(flags: u32) -> Self {
        let context = Context::new();
        let created = create(&context, flags);
        let opened = open(&context, export(created)).unwrap();
        let events = [created, opened].map(|pool| (0..COUNT).map(|i| event(pool, i)).collect());
        Self {
            context,
            pools: [created, opened],
            events,
        }
    }
}

impl Drop for Both {
    fn drop(&mut self) {
        for event in self.events.iter().flatten() {
            ok!(zeEventDestroy(*event));
        }
        ok!(zeEventPoolCloseIpcHandle(self.pools[1]));
        ok!(zeEventPoolDestroy(self.pools[0]));
    }
}

#[test]
fn a_wait_sees_another_process_where_no_thread_can_be_started() {
    process::alone("without_threads");
}

#[test]
#[ignore = "run by a_wait_sees_another_process_where_no_thread_can_be_started"]
fn without_threads() {
    let context = Context::new();
    let pool = create(&context, SHARED);
    let events = [event(pool, 0), event(pool, 1)];
    let child = unsafe { libc::fork() };
    if child == 0 {
        for event in events {
            thread::sleep(Duration::from_millis(500));
            let _ = ze!(zeEventHostSignal(event));
        }
        unsafe { libc::_exit(0) };
    }
    seccomp::refuse_threads();
    for event in events {
        let begin = Instant::now();
        assert_eq!(ze!(zeEventHostSynchronize(event, 100 * SECOND)), OK);
        assert!(begin.elapsed() < Duration::from_secs(50));
    }
    let mut status = 0;
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    for event in events {
        ok!(zeEventDestroy(event));
    }
    ok!(zeEventPoolDestroy(pool));
}

#[test]
fn both_pools_have_one_state_of_an_event() {
    let both = Both::new(SHARED);
    for [from, to] in [[0, 1], [1, 0]] {
        let (one, other) = (both.events[from][2], both.events[to][2]);
        assert!(!common::is_set(other));
        ok!(zeEventHostSignal(one));
        assert!(common::is_set(other));
        common::wait(other);
        assert!(!common::is_set(both.events[to][1]), "a neighbour");
        ok!(zeEventHostReset(other));
        assert!(!common::is_set(one));
    }
}

#[test]
fn a_thread_wakes_up_when_the_other_pool_s_event_is_set() {
    for timeout in [u64::MAX, 60 * SECOND] {
        let both = Both::new(SHARED);
        let (one, other) = (both.events[0][0] as usize, both.events[1][0] as usize);
        let waiting = thread::spawn(move || ze!(zeEventHostSynchronize(other as Event, timeout)));
        thread::sleep(Duration::from_millis(30));
        assert!(!waiting.is_finished());
        ok!(zeEventHostSignal(one as Event));
        assert_eq!(waiting.join().unwrap(), OK);
    }
}

/// One list fills and signals, the other waits by the other pool and copies what the first has filled.
#[test]
fn commands_wait_for_commands_of_the_other_pool() {
    for &flags in common::queue_orders() {
        for [from, to] in [[0, 1], [1, 0]] {
            let both = Both::new(SHARED);
            let context = &both.context;
            let (source, target) = (
                context.alloc(Kind::Host, 4096),
                context.alloc(Kind::Host, 4096),
            );
            let (first, second) = (context.immediate(flags), context.immediate(flags));
            for round in 1..20u8 {
                common::copy(second, target, source, 4096, NONE, &[both.events[to][0]]);
                thread::sleep(Duration::from_micros(u64::from(round) * 50));
                common::fill(first, source, &[round], 4096, both.events[from][0], &[]);
                common::finish(context, second);
                assert!(common::bytes(target, 4096).iter().all(|it| *it == round));
                ok!(zeEventHostReset(both.events[round as usize % 2][0]));
            }
            common::destroy(first);
            common::destroy(second);
            context.free(source);
            context.free(target);
        }
    }
}

/// A command that reaches the event after the reset waits for the next time that the event is set.
#[test]
fn a_set_and_a_reset_release_the_commands_that_waited_then() {
    let both = Both::new(SHARED);
    let context = &both.context;
    let memory = context.alloc(Kind::Host, 64);
    let counts = common::bytes_mut(memory, 64);
    counts.fill(0);
    let lists = [context.immediate(0), context.immediate(0)];
    let waits = [both.events[1][0]];
    let early = both.events[0][1];
    common::fill(lists[0], memory, &[1], 1, early, &waits);
    // A change counts for commands that wait by then, and another thread may begin this command's wait late.
    for _ in 0..500 {
        ok!(zeEventHostSignal(both.events[0][0]));
        ok!(zeEventHostReset(both.events[0][0]));
        if ze!(zeEventHostSynchronize(early, 20_000_000)) == OK {
            break;
        }
    }
    let late = memory.cast::<u8>().wrapping_add(1).cast();
    common::fill(lists[1], late, &[1], 1, NONE, &waits);
    common::wait(early);
    thread::sleep(Duration::from_millis(30));
    assert_eq!(common::bytes(memory, 2), [1, 0]);
    ok!(zeEventHostSignal(both.events[0][0]));
    common::finish(context, lists[1]);
    assert_eq!(common::bytes(memory, 2), [1, 1]);
    lists.into_iter().for_each(common::destroy);
    context.free(memory);
}

#[test]
fn timestamps_are_those_of_the_command_that_signalled() {
    let both = Both::new(TIMED);
    let context = &both.context;
    let memory = context.alloc(Kind::Host, 1 << 20);
    let list = context.immediate(0);
    common::fill(list, memory, &[1], 1 << 20, both.events[0][3], &[]);
    common::wait(both.events[1][3]);
    let times = both.events.each_ref().map(|events| {
        let mut result = sys::ze_kernel_timestamp_result_t::default();
        ok!(zeEventQueryKernelTimestamp(events[3], &raw mut result));
        (result.global.kernelStart, result.global.kernelEnd)
    });
    assert_eq!(times[0], times[1]);
    assert!(times[0].0 > 0 && times[0].0 <= times[0].1);
    common::destroy(list);
    context.free(memory);
}

/// Sets an event by a command that fails when it runs: it queries the time of an event that is not set.
fn fail(list: common::List, unset: Event, memory: common::Memory, signal: Event) {
    let mut queried = unset;
    ok!(zeCommandListAppendQueryKernelTimestamps(
        list,
        1,
        &raw mut queried,
        memory,
        ptr::null(),
        signal,
        0,
        ptr::null_mut()
    ));
}

/// Two handles of a pool know as little of each other's errors as two processes.
#[test]
fn an_error_is_forgotten_after_a_reset_by_either_pool() {
    const FAULT: sys::ze_result_t = sys::ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
    let both = Both::new(TIMED);
    let context = &both.context;
    let memory = context.alloc(Kind::Host, 64);
    let list = context.immediate(0);
    let (one, other) = (both.events[0][1], both.events[1][1]);
    let outcome = || ze!(zeEventHostSynchronize(one, u64::MAX));
    for resetting in [one, other] {
        fail(list, both.events[0][0], memory, one);
        assert_eq!(outcome(), FAULT);
        common::fill(list, memory, &[1], 64, one, &[]);
        assert_eq!(outcome(), FAULT, "set once more, without a reset");
        ok!(zeEventHostReset(resetting));
        ok!(zeEventHostSignal(other));
        assert_eq!(outcome(), OK);
        ok!(zeEventHostReset(other));
    }
    // The reset may be followed by a command of this process, which succeeds or fails.
    fail(list, both.events[0][0], memory, one);
    assert_eq!(outcome(), FAULT);
    ok!(zeEventHostReset(other));
    common::fill(list, memory, &[1], 64, one, &[]);
    assert_eq!(outcome(), OK);
    fail(list, both.events[0][0], memory, one);
    assert_eq!(ze!(zeEventHostSynchronize(other, u64::MAX)), OK);
    assert_eq!(outcome(), FAULT);
    ok!(zeEventHostReset(other));
    common::destroy(list);
    context.free(memory);
}

#[test]
fn an_event_outlives_both_pools() {
    let context = Context::new();
    let created = create(&context, SHARED);
    let opened = open(&context, export(created)).unwrap();
    let (one, other) = (event(created, 0), event(opened, 0));
    ok!(zeEventPoolCloseIpcHandle(opened));
    ok!(zeEventPoolDestroy(created));
    ok!(zeEventHostSignal(one));
    common::wait(other);
    ok!(zeEventDestroy(one));
    ok!(zeEventDestroy(other));
}

#[test]
fn a_new_event_is_not_set_and_an_opened_one_keeps_its_state() {
    let both = Both::new(SHARED);
    ok!(zeEventHostSignal(both.events[0][0]));
    let opened = event(both.pools[1], 0);
    assert!(common::is_set(opened));
    ok!(zeEventDestroy(opened));
    let created = event(both.pools[0], 0);
    assert!(!common::is_set(created));
    ok!(zeEventDestroy(created));
}

#[test]
fn other_pools_and_handles_are_refused() {
    let context = Context::new();
    let plain = context.pool(1, false);
    let mut handle = Handle::default();
    assert_eq!(
        ze!(zeEventPoolGetIpcHandle(plain.pool, &raw mut handle)),
        INVALID
    );
    assert_eq!(ze!(zeEventPoolCloseIpcHandle(plain.pool)), INVALID);
    type Put = unsafe extern "C" fn(sys::ze_context_handle_t, Handle) -> sys::ze_result_t;
    if let Some(put) = common::extension::<Put>(c"zeEventPoolPutIpcHandle") {
        let own = export(create(&context, SHARED));
        for (handle, expected) in [(own, OK), (Handle::default(), INVALID)] {
            assert_eq!(unsafe { put(context.0, handle) }, expected);
        }
    }
    assert_eq!(open(&context, Handle::default()), Err(INVALID));

    // A handle of memory, and one of a pool that is gone.
    let memory = context.alloc(Kind::Host, 64);
    let mut of_memory = sys::ze_ipc_mem_handle_t::default();
    ok!(zeMemGetIpcHandle(context.0, memory, &raw mut of_memory));
    handle.data = of_memory.data;
    assert_eq!(open(&context, handle), Err(INVALID));
    let mut forged = export(create(&context, SHARED));
    forged.data[..8].copy_from_slice(&of_memory.data[..8]);
    forged.data[8..16].copy_from_slice(&of_memory.data[8..16]);
    assert_eq!(open(&context, forged), Err(INVALID), "the memory's file");
    let gone = create(&context, SHARED);
    let handle = export(gone);
    ok!(zeEventPoolDestroy(gone));
    assert_eq!(open(&context, handle), Err(INVALID));
    context.free(memory);
}

#[test]
fn another_process_answers() {
    let context = Context::new();
    let pool = create(&context, SHARED);
    let events: Vec<Event> = (0..COUNT).map(|index| event(pool, index)).collect();
    let digits = |byte: &c_char| format!("{:02x}", *byte as u8);
    let handle: String = export(pool).data.iter().map(digits).collect();
    let memory = context.alloc(Kind::Host, 64);
    let list = context.immediate(0);
    // The other process's answer releases a command of this one.
    common::fill(list, memory, &[9], 64, events[2], &[events[1]]);
    let start = events[0] as usize;
    let starter = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        ok!(zeEventHostSignal(start as Event));
    });
    process::alone_with("the_other_process", &[("ZEUSM_TEST_POOL", &handle)]);
    starter.join().unwrap();
    common::wait(events[2]);
    assert_eq!(common::bytes(memory, 64), [9; 64]);
    common::destroy(list);
    context.free(memory);
}

#[test]
#[ignore = "the other side of `another_process_answers`"]
fn the_other_process() {
    let digits = std::env::var("ZEUSM_TEST_POOL").unwrap();
    let mut handle = Handle::default();
    for (index, place) in handle.data.iter_mut().enumerate() {
        *place = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).unwrap() as _;
    }
    let context = Context::new();
    let pool = open(&context, handle).unwrap();
    let (start, answer) = (event(pool, 0), event(pool, 1));
    // The answer is a command that waits for the event of the process that started this one.
    let list = context.immediate(0);
    let mut waits = [start];
    ok!(zeCommandListAppendBarrier(
        list,
        answer,
        1,
        waits.as_mut_ptr()
    ));
    common::wait(answer);
    assert!(common::is_set(start));
    common::destroy(list);
}

#[test]
fn the_child_of_a_fork_shares_events() {
    process::alone("a_child_waits_and_answers");
}

#[test]
#[ignore = "forks, so it runs alone"]
fn a_child_waits_and_answers() {
    let context = Context::new();
    let pool = create(&context, SHARED);
    let events: Vec<Event> = (0..COUNT).map(|index| event(pool, index)).collect();
    // This process's thread watches already.
    assert_eq!(
        ze!(zeEventHostSynchronize(events[0], 1000)),
        sys::ZE_RESULT_NOT_READY
    );
    let child = unsafe { libc::fork() };
    if child == 0 {
        unsafe { libc::alarm(forks::CHILD_TIMEOUT) };
        common::wait(events[0]);
        ok!(zeEventHostSignal(events[1]));
        unsafe { libc::_exit(0) };
    }
    thread::sleep(Duration::from_millis(50));
    ok!(zeEventHostSignal(events[0]));
    common::wait(events[1]);
    forks::join(child);
}
