//! Threads that the exit of the interpreter ends below frames of Rust; they park for ever instead.
//!
//! Before Python 3.14 a thread that asks for the GIL after the exit has begun ends by `pthread_exit`, which unwinds its stack.
//! Rust aborts the process when that reaches PyO3's frames, which catch whatever unwinds. Any call of the C API may end so: one
//! that drops a reference runs finalizers, weak references' callbacks or the garbage collector, and all Python code releases
//! the GIL between two instructions.
//!
//! The unwinder asks the personality function of each frame what the frame does, and finds that function through a pointer, of
//! which each library has its own. The pointer of this module leads to a function that parks the thread when the unwinding is
//! that of `pthread_exit`. The thread does not hold the GIL then, and the exit does not wait for it. Nothing of Rust's frames
//! has been dropped. Python 3.14 does the same, and PyO3 where it acquires the GIL itself.

#![cfg(target_os = "linux")]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;

/// The function of a frame that tells the unwinder what to do: of a version, what happens (flags), the class of the exception,
/// the exception, and the frame. It is that of the C++ ABI for Itanium, which Linux uses.
type Personality = unsafe extern "C" fn(c_int, c_int, u64, *mut c_void, *mut c_void) -> c_int;

/// The flag of an unwinding that nothing can catch: that of `pthread_exit`.
const FORCE_UNWIND: c_int = 8;

unsafe extern "C" {
    /// The pointer through which the tables of this library's frames name Rust's personality function. Compilers emit it under
    /// this name in writable memory, as the tables are position-independent.
    #[link_name = "DW.ref.rust_eh_personality"]
    static PERSONALITY: AtomicPtr<c_void>;

    /// Rust's own function.
    #[link_name = "rust_eh_personality"]
    fn of_rust(
        version: c_int,
        actions: c_int,
        class: u64,
        exception: *mut c_void,
        frame: *mut c_void,
    ) -> c_int;
}

/// Has the threads that are ended in frames of this library park.
pub(crate) fn park_ended_threads() {
    let personality: Personality = parks;
    // SAFETY: the pointer is as aligned as an atomic one, and nothing but the unwinder reads it: a whole word, each time.
    unsafe { &PERSONALITY }.store(personality as *mut c_void, Ordering::Relaxed);
}

/// Rust's function, except that it parks the thread which an unwinding ends that nothing can catch.
///
/// # Safety
/// As of Rust's: the unwinder calls it.
unsafe extern "C" fn parks(
    version: c_int,
    actions: c_int,
    class: u64,
    exception: *mut c_void,
    frame: *mut c_void,
) -> c_int {
    if actions & FORCE_UNWIND != 0 {
        loop {
            thread::park();
        }
    }
    // SAFETY: the unwinder's arguments are passed on.
    unsafe { of_rust(version, actions, class, exception, frame) }
}
