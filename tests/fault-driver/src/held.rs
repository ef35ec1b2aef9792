//! An operation that stays in flight until a test releases it: a barrier with an additional event in its wait list.

use std::ffi::c_void;
use std::{mem, ptr, slice};

use level_zero_sys as sys;
use parking_lot::Mutex;
use sys::{
    ze_command_list_handle_t as List, ze_context_handle_t as Context, ze_device_handle_t as Device,
    ze_event_desc_t as EventDesc, ze_event_handle_t as Event, ze_event_pool_desc_t as PoolDesc,
    ze_event_pool_handle_t as Pool, ze_result_t as Answer,
};

/// Whether the next barrier is held, and the events of those that are.
#[derive(Default)]
struct Held {
    next: bool,
    /// The addresses of the events.
    events: Vec<usize>,
}

static HELD: Mutex<Held> = Mutex::new(Held {
    next: false,
    events: Vec::new(),
});

/// From now on, the next barrier that is appended is not complete before [`zeusm_fault_release`].
#[unsafe(no_mangle)]
pub extern "C" fn zeusm_fault_hold() {
    HELD.lock().next = true;
}

/// Lets all barriers that are held complete.
#[unsafe(no_mangle)]
pub extern "C" fn zeusm_fault_release() {
    for event in mem::take(&mut HELD.lock().events) {
        // SAFETY: the type is that of the function; the event was created below, and is never destroyed.
        let answer = unsafe {
            let signal: unsafe extern "C" fn(Event) -> Answer =
                mem::transmute(behind("zeEventHostSignal"));
            signal(ptr::with_exposed_provenance_mut(event))
        };
        assert_eq!(answer, sys::ZE_RESULT_SUCCESS);
    }
}

/// The function for this name that holds, if it must do so now.
pub(crate) fn function(name: &str) -> Option<*const c_void> {
    let holds = name == "zeCommandListAppendBarrier" && mem::take(&mut HELD.lock().next);
    holds.then_some(append_held_barrier as *const c_void)
}

fn behind(name: &str) -> *const c_void {
    crate::behind(name).expect("the CPU runtime has the function")
}

/// As `zeCommandListAppendBarrier`, whose preconditions it has.
unsafe extern "C" fn append_held_barrier(
    list: List,
    signal: Event,
    count: u32,
    waits: *mut Event,
) -> Answer {
    let append: unsafe extern "C" fn(List, Event, u32, *mut Event) -> Answer =
        // SAFETY: the type is that of the function.
        unsafe { mem::transmute(behind("zeCommandListAppendBarrier")) };
    let mut wait_list = match count {
        0 => Vec::new(),
        // SAFETY: the caller guarantees `count` handles.
        _ => unsafe { slice::from_raw_parts(waits, count as usize) }.to_vec(),
    };
    // SAFETY: the list is valid.
    let held = unsafe { event_for(list) };
    HELD.lock().events.push(held.expose_provenance());
    wait_list.push(held);
    // SAFETY: the arguments are those of the caller, with an additional event of the same context.
    unsafe { append(list, signal, count + 1, wait_list.as_mut_ptr()) }
}

/// A new event of the list's context.
///
/// # Safety
/// The list must be valid.
unsafe fn event_for(list: List) -> Event {
    let description = PoolDesc {
        stype: sys::ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
        flags: sys::ZE_EVENT_POOL_FLAG_HOST_VISIBLE.0,
        count: 1,
        ..Default::default()
    };
    let event_description = EventDesc {
        stype: sys::ZE_STRUCTURE_TYPE_EVENT_DESC,
        ..Default::default()
    };
    let (mut context, mut pool, mut event) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: the types are those of the functions, and all arguments are valid.
    let answers = unsafe {
        let context_of: unsafe extern "C" fn(List, *mut Context) -> Answer =
            mem::transmute(behind("zeCommandListGetContextHandle"));
        let make_pool: unsafe extern "C" fn(
            Context,
            *const PoolDesc,
            u32,
            *mut Device,
            *mut Pool,
        ) -> Answer = mem::transmute(behind("zeEventPoolCreate"));
        let make_event: unsafe extern "C" fn(Pool, *const EventDesc, *mut Event) -> Answer =
            mem::transmute(behind("zeEventCreate"));
        [
            context_of(list, &mut context),
            make_pool(context, &description, 0, ptr::null_mut(), &mut pool),
            make_event(pool, &event_description, &mut event),
        ]
    };
    assert_eq!(answers, [sys::ZE_RESULT_SUCCESS; 3]);
    event
}
