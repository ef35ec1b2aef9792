//! Calls of Python's C API in which the exit of the interpreter may end this thread; it parks for ever instead.
//!
//! Before Python 3.14 a thread that asks for the GIL after the exit has begun ends by `pthread_exit`, which unwinds its stack.
//! PyO3 declares the C API as functions that do not unwind, so Rust aborts the process if the call is below one of its frames.
//! Python code releases the GIL between any two instructions: that of an import, of a property or of an iterator.
//! NumPy releases it in each copy.
//!
//! The linker replaces PyO3's calls of these functions by calls of those here (its option `--wrap`, see `build.rs`). They call the
//! C API as one that may unwind, and the thread parks in their frame. It does not hold the GIL then, and the exit does not wait for
//! it. Python 3.14 does the same, and PyO3 where it acquires the GIL itself.

#![cfg(target_os = "linux")]

use std::ffi::{c_int, c_long};
use std::{mem, thread};

use pyo3::ffi;

type Object = *mut ffi::PyObject;
type Place = *mut Object;
type View = *mut ffi::Py_buffer;
type Number = *mut isize;

/// Parks the thread when it is dropped, which only an unwinding does.
struct Parks;

impl Drop for Parks {
    fn drop(&mut self) {
        loop {
            thread::park();
        }
    }
}

macro_rules! parked {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(const _: () = {
            unsafe extern "C-unwind" {
                #[link_name = concat!("__real_", stringify!($name))]
                fn real($($argument: $type),*) $(-> $result)?;
                #[link_name = stringify!($name)]
                fn replaced($($argument: $type),*) $(-> $result)?;
            }

            /// Some linkers know `real` only if something refers to the function, which depends on PyO3 and the interpreter.
            #[used]
            static REFERRED: unsafe extern "C-unwind" fn($($type),*) $(-> $result)? = replaced;

            /// # Safety
            /// As of the function that it replaces.
            #[unsafe(export_name = concat!("__wrap_", stringify!($name)))]
            unsafe extern "C" fn parked($($argument: $type),*) $(-> $result)? {
                let parks = Parks;
                // SAFETY: the caller's arguments are passed on.
                let result = unsafe { real($($argument),*) };
                mem::forget(parks);
                result
            }
        };)*
    };
}
include!("functions.rs");
