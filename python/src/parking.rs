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
//! has been dropped. Python 3.14 parks such threads itself, and gets no such pointer; PyO3 parks them where it acquires the GIL.
//!
//! The pointer's name is what compilers agree on, and no promise, so the library of each linker that builds a wheel is tested:
//! `tests/python/test_exit.py` in `make test` that of the system's linker, and in `make test-dist` that of zig.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;

use pyo3::Python;

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

/// Has the threads that are ended in frames of this library park, where the interpreter does not park them itself.
pub(crate) fn park_ended_threads(py: Python<'_>) {
    if py.version_info() >= (3, 14) {
        return;
    }
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
