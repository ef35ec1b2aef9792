//! The armed failure: which call fails, and with which result code.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{CString, c_char};
use std::ptr;

use level_zero_sys as sys;
use parking_lot::Mutex;

#[derive(Debug)]
struct Plan {
    /// The number of calls since the failure was armed.
    calls: u64,
    /// The index of the failing call, from 1; 0 for none.
    nth: u64,
    code: u32,
    /// The function whose call has failed.
    fired: Option<CString>,
}

static PLAN: Mutex<Plan> = Mutex::new(Plan {
    calls: 0,
    nth: 0,
    code: 0,
    fired: None,
});

/// Functions that return `ZE_RESULT_NOT_READY` without a failure.
const MAY_BE_UNREADY: [&str; 8] = [
    "zeEventQueryStatus",
    "zeEventHostSynchronize",
    "zeEventQueryKernelTimestamp",
    "zeFenceHostSynchronize",
    "zeFenceQueryStatus",
    "zeCommandQueueSynchronize",
    "zeCommandListHostSynchronize",
    "zeDeviceSynchronize",
];

/// The command lists with a failed append. As on Intel's driver, which would execute the commands of the failed append
/// instead of the next ones, they are of no use any more; here each further append fails.
static UNUSABLE: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// The events of a lost device, and the device if its status tells.
static LOST: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

thread_local! {
    /// The functions that fail in this thread.
    static LOST_HERE: Cell<&'static [&'static str]> = const { Cell::new(&[]) };
}

/// Counts a call with its first argument. Returns the result code if this call must fail. Calls for which the code is not an
/// error are not counted.
pub(crate) fn fails(name: &'static str, object: usize) -> Option<u32> {
    let is_lost = match name {
        "zeEventHostSynchronize" | "zeDeviceGetStatus" => LOST.lock().contains(&object),
        _ => LOST_HERE.get().contains(&name),
    };
    if is_lost {
        return Some(sys::ZE_RESULT_ERROR_DEVICE_LOST.0);
    }
    let is_append = name.starts_with("zeCommandListAppend");
    if is_append && UNUSABLE.lock().contains(&object) {
        return Some(sys::ZE_RESULT_ERROR_UNKNOWN.0);
    }
    let code = planned(name);
    // A driver may lack this function.
    let is_missing = name == "zeCommandListAppendMemoryCopyFromContext"
        && code == Some(sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE.0);
    if is_append && code.is_some() && !is_missing {
        UNUSABLE.lock().insert(object);
    }
    if name == "zeCommandListDestroy" && code.is_none() {
        UNUSABLE.lock().remove(&object);
    }
    code
}

/// Counts a call. Returns the result code if the plan says that it fails.
fn planned(name: &'static str) -> Option<u32> {
    let mut plan = PLAN.lock();
    if plan.code == sys::ZE_RESULT_NOT_READY.0 && MAY_BE_UNREADY.contains(&name) {
        return None;
    }
    plan.calls += 1;
    if plan.calls != plan.nth {
        return None;
    }
    plan.fired = CString::new(name).ok();
    Some(plan.code)
}

/// Resets the count of calls and arms a failure: the `nth` call from now on, from 1, returns `code`. With 0 no call fails.
#[unsafe(no_mangle)]
pub extern "C" fn zeusm_fault_arm(nth: u64, code: u32) {
    *PLAN.lock() = Plan {
        calls: 0,
        nth,
        code,
        fired: None,
    };
}

/// From now on, waits for this event and queries of this device's status fail as after a loss of the device, instead of those
/// of the last call. Null: no query of a status tells.
#[unsafe(no_mangle)]
pub extern "C" fn zeusm_fault_lose(event: usize, device: usize) {
    *LOST.lock() = BTreeSet::from([event, device]);
}

/// From now on, waits for command lists fail in the calling thread as after a loss of the device, and so do barriers, if
/// `barriers` is not zero.
#[unsafe(no_mangle)]
pub extern "C" fn zeusm_fault_lose_here(barriers: u32) {
    LOST_HERE.set(match barriers {
        0 => &["zeCommandListHostSynchronize"],
        _ => &["zeCommandListHostSynchronize", "zeCommandListAppendBarrier"],
    });
}

/// The number of calls since the last [`zeusm_fault_arm`].
#[unsafe(no_mangle)]
pub extern "C" fn zeusm_fault_calls() -> u64 {
    PLAN.lock().calls
}

/// The function whose call failed, or null. Valid until the next [`zeusm_fault_arm`].
#[unsafe(no_mangle)]
pub extern "C" fn zeusm_fault_fired() -> *const c_char {
    PLAN.lock()
        .fired
        .as_ref()
        .map_or(ptr::null(), |name| name.as_ptr())
}
