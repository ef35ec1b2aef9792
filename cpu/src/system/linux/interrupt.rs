//! Whether Ctrl-C waits for a thread that is in the runtime.

use std::ffi::{c_char, c_int, c_void};

use super::library::symbol;

type Object = *mut c_void;
type State = unsafe extern "C" fn() -> Object;

/// Whether this thread is Python's main one, has the GIL, and has a `SIGINT` that will raise `KeyboardInterrupt`. The signal stays.
///
/// Python's C handler only sets a flag, which the thread looks at once it executes Python again. No Python code runs here: SYCL,
/// which called the runtime, may hold locks. So the program's own handlers wait for the end of the build.
///
/// Source: Python's C API, `PyOS_InterruptOccurred`, `PyErr_SetInterrupt`, `PyGILState_GetThisThreadState`,
/// `PyThreadState_GetUnchecked`, `PyImport_AddModule`.
pub fn is_pending() -> bool {
    // SAFETY: see `pending`.
    unsafe { pending() }.unwrap_or(false)
}

/// `None` where something is missing.
///
/// # Safety
/// The process's Python, if it has one, is any version of Python 3, whose functions have these types.
unsafe fn pending() -> Option<bool> {
    // SAFETY: the first two functions may be called at any time, and the others by a thread with the GIL, whose own state is the
    // current one.
    unsafe {
        let own: State = symbol(c"PyGILState_GetThisThreadState")?;
        // Its name before Python 3.13 is the second one.
        let current: Option<State> = symbol(c"PyThreadState_GetUnchecked");
        let current = current.or_else(|| symbol(c"_PyThreadState_UncheckedGet"))?();
        if current.is_null() || own() != current || !raises()? {
            return None;
        }
        let take: unsafe extern "C" fn() -> c_int = symbol(c"PyOS_InterruptOccurred")?;
        let set: unsafe extern "C" fn() = symbol(c"PyErr_SetInterrupt")?;
        let is_pending = take() != 0;
        if is_pending {
            set();
        }
        Some(is_pending)
    }
}

/// Whether the handler of `SIGINT` is Python's own. Both functions of the module are built in.
///
/// # Safety
/// That of [`pending`], by a thread with the GIL.
unsafe fn raises() -> Option<bool> {
    // SAFETY: the caller's; each object but the module is a reference of its own, which is given back.
    unsafe {
        // It imports nothing: the module is there from the start, and the reference is borrowed.
        let module: unsafe extern "C" fn(*const c_char) -> Object = symbol(c"PyImport_AddModule")?;
        let attribute: unsafe extern "C" fn(Object, *const c_char) -> Object =
            symbol(c"PyObject_GetAttrString")?;
        let call: unsafe extern "C" fn(Object, *const c_char, *const c_char, ...) -> Object =
            symbol(c"PyObject_CallMethod")?;
        let release: unsafe extern "C" fn(Object) = symbol(c"Py_DecRef")?;
        let clear: unsafe extern "C" fn() = symbol(c"PyErr_Clear")?;
        let module = module(c"_signal".as_ptr());
        if module.is_null() {
            clear();
            return None;
        }
        let own = attribute(module, c"default_int_handler".as_ptr());
        let current = call(module, c"getsignal".as_ptr(), c"i".as_ptr(), libc::SIGINT);
        if own.is_null() || current.is_null() {
            clear();
        }
        for object in [own, current] {
            release(object);
        }
        Some(!own.is_null() && own == current)
    }
}
