//! Which call fails, and with which answer.

use std::ffi::{CString, c_char};
use std::ptr;

use level_zero_sys as sys;
use parking_lot::Mutex;

#[derive(Debug)]
struct Plan {
    /// How many calls were made since it was armed.
    calls: u64,
    /// The number of the call that fails, from 1 on; 0: none.
    nth: u64,
    code: u32,
    /// The function that failed, once it has.
    fired: Option<CString>,
}

static PLAN: Mutex<Plan> = Mutex::new(Plan {
    calls: 0,
    nth: 0,
    code: 0,
    fired: None,
});

/// These answer "not ready" when they have not failed.
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

/// Counts a call; the answer when it is the one that fails. A call that cannot fail in the wanted way does not count.
pub(crate) fn fails(name: &'static str) -> Option<u32> {
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

/// Begins to count calls anew; the `nth` from here on, from 1, answers `code`. With 0 none does.
#[unsafe(no_mangle)]
pub extern "C" fn zeusm_fault_arm(nth: u64, code: u32) {
    *PLAN.lock() = Plan {
        calls: 0,
        nth,
        code,
        fired: None,
    };
}

/// How many calls were made since the last [`zeusm_fault_arm`].
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
