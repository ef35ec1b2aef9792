//! Exceptions of the C++ runtime, which the tests of Python packages cannot cause at will.
#![allow(clippy::unwrap_used)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use libloading::os::unix;

use super::Handler;
use crate::shared_library::symbol;
use crate::sycl::call::thrown;

type Throw = unsafe extern "C-unwind" fn(*const c_char);

fn library() -> unix::Library {
    // SAFETY: the C++ runtime only runs its initialisers.
    unsafe { unix::Library::new("libstdc++.so.6") }.unwrap()
}

fn text_of(handler: &Handler, throw: Throw, text: &CStr) -> String {
    // SAFETY: the function takes a text.
    thrown(handler.call("throw", || unsafe { throw(text.as_ptr()) }))
}

#[test]
fn an_exception_is_an_error_with_its_text_each_time() {
    let library = library();
    let handler = Handler::find(&library).unwrap();
    // SAFETY: these are the types of the functions, of `std::__throw_runtime_error` and its like.
    let (runtime_error, out_of_range): (Throw, Throw) = unsafe {
        (
            symbol(&library, c"_ZSt21__throw_runtime_errorPKc").unwrap(),
            symbol(&library, c"_ZSt20__throw_out_of_rangePKc").unwrap(),
        )
    };
    for _ in 0..100 {
        assert_eq!(text_of(&handler, runtime_error, c"no USM"), "no USM");
        assert_eq!(text_of(&handler, out_of_range, c"far"), "far");
    }
    assert_eq!(handler.call("none", || 7), Ok(7));
    std::mem::forget(library);
}

#[test]
fn an_exception_of_another_class_has_no_text() {
    type Allocate = unsafe extern "C" fn(usize) -> *mut c_int;
    type ThrowObject = unsafe extern "C-unwind" fn(*mut c_int, *const c_void, *const c_void);
    let library = library();
    let handler = Handler::find(&library).unwrap();
    // SAFETY: these are the types of the functions and of `typeid(int)`. The object is an `int`, which has no destructor.
    let answer = unsafe {
        let allocate: Allocate = symbol(&library, c"__cxa_allocate_exception").unwrap();
        let throw: ThrowObject = symbol(&library, c"__cxa_throw").unwrap();
        let class: *const c_void = symbol(&library, c"_ZTIi").unwrap();
        let object = allocate(size_of::<c_int>());
        object.write(5);
        handler.call("throw", || throw(object, class, ptr::null()))
    };
    assert_eq!(thrown(answer), "an exception without a text");
    std::mem::forget(library);
}

#[test]
fn a_panic_is_not_caught() {
    let library = library();
    let handler = Handler::find(&library).unwrap();
    let call = || handler.call("panic", || panic!("on purpose"));
    let panic = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
    std::mem::forget(library);
}
