//! Calls of the user's code where a panic must not unwind: through the thread for host tasks, or through the submission of an
//! operation, whose caller would drop operands that are in flight.

use std::mem;
use std::panic::{self, AssertUnwindSafe};

/// Calls `code`. A panic ends here; the panic hook has reported it.
pub(super) fn run(code: impl FnOnce()) {
    let Err(payload) = panic::catch_unwind(AssertUnwindSafe(code)) else {
        return;
    };
    // The payload is the user's as well, and its drop may panic with another one.
    if let Err(another) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another);
    }
}
