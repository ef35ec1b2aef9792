//! Exceptions of Microsoft's C++ runtime, which the tests of Python packages cannot cause at will.
#![allow(clippy::unwrap_used)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use super::Handler;
use crate::shared_library;
use crate::sycl::call::thrown;

type Throw = unsafe extern "C-unwind" fn(*const c_char);
type ThrowObject = unsafe extern "C-unwind" fn(*const c_void, *const c_void);

fn function<F: Copy>(library: &str, name: &CStr) -> F {
    // SAFETY: the C++ runtime only runs its initialisers; it is never unloaded.
    let loaded = unsafe { libloading::Library::new(library) }.unwrap();
    std::mem::forget(loaded);
    let file = std::ffi::CString::new(library).unwrap();
    // SAFETY: the callers give the types of the functions.
    unsafe { shared_library::symbol(shared_library::module(&file).unwrap(), name) }.unwrap()
}

#[test]
fn an_exception_is_an_error_with_its_text_each_time() {
    let out_of_range: Throw = function("msvcp140.dll", c"?_Xout_of_range@std@@YAXPEBD@Z");
    let length_error: Throw = function("msvcp140.dll", c"?_Xlength_error@std@@YAXPEBD@Z");
    // SAFETY: the functions take a text.
    let text_of = |throw: Throw, text: &CStr| unsafe {
        thrown(Handler.call("throw", || throw(text.as_ptr())))
    };
    for _ in 0..100 {
        assert_eq!(text_of(out_of_range, c"far"), "far");
        assert_eq!(text_of(length_error, c"no USM"), "no USM");
    }
    assert_eq!(Handler.call("none", || 7), Ok(7));
}

#[test]
fn an_exception_of_another_class_has_no_text() {
    let throw: ThrowObject = function("vcruntime140.dll", c"_CxxThrowException");
    let object: c_int = 5;
    // An object of no class, without a destructor. Addresses in the description are relative to the program's.
    static INFO: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];
    static NO_CLASSES: AtomicU32 = AtomicU32::new(0);
    let program = shared_library::containing(INFO.as_ptr().cast()).unwrap();
    let offset = NO_CLASSES.as_ptr().addr() - program.addr();
    INFO[3].store(offset as u32, Ordering::Relaxed);
    // SAFETY: the description is that of the object.
    let call = || unsafe { throw((&raw const object).cast(), INFO.as_ptr().cast()) };
    let answer = Handler.call("throw", call);
    assert_eq!(thrown(answer), "an exception without a text");
}

#[test]
fn frames_between_are_cleaned_up_by_their_own_handlers() {
    let throw: Throw = function("msvcp140.dll", c"?_Xout_of_range@std@@YAXPEBD@Z");
    // SAFETY: the function takes a text.
    let inner = || unsafe { thrown(Handler.call("throw", || throw(c"inner".as_ptr()))) };
    assert_eq!(Handler.call("outer", inner), Ok("inner".to_owned()));
}

#[test]
fn a_panic_is_not_caught() {
    let call = || Handler.call("panic", || panic!("on purpose"));
    let panic = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
}
