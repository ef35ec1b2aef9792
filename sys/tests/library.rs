//! Loading of libraries, and the errors. The tests use the C library, so they do not need a Level Zero loader.
#![allow(clippy::unwrap_used)]

use std::ffi::CStr;

use level_zero_sys as sys;

/// The C library, and its function that returns the process's number.
const C_LIBRARY: (&str, &CStr) = if cfg!(windows) {
    ("msvcrt.dll", c"_getpid")
} else {
    ("libc.so.6", c"getpid")
};

fn c_library() -> &'static sys::Library {
    // SAFETY: the library is in use already, and has no function of Level Zero's names.
    unsafe { sys::load_from(C_LIBRARY.0) }.unwrap()
}

#[test]
fn a_missing_library_is_an_error_that_names_it() {
    // SAFETY: there is no such library.
    let error = unsafe { sys::load_from("/nowhere/libze_loader.so.1") }.unwrap_err();
    assert!(matches!(&error, sys::LoadError::Library(tried) if tried.len() == 1));
    assert!(
        error.to_string().contains("/nowhere/libze_loader.so.1"),
        "{error}"
    );
}

#[test]
fn a_library_without_level_zero_has_none_of_its_functions() {
    let library = c_library();
    assert!(library.zeInit.is_none() && library.zeMemAllocShared.is_none());
    let error = library.missing("zeInit");
    assert!(matches!(&error, sys::LoadError::Symbol { name, .. } if name == "zeInit"));
    assert!(error.to_string().contains(C_LIBRARY.0), "{error}");
}

#[test]
fn functions_without_a_declaration_can_be_looked_up() {
    let library = c_library();
    // SAFETY: this is the type of getpid.
    let found = unsafe { library.symbol::<unsafe extern "C" fn() -> i32>(C_LIBRARY.1) };
    // SAFETY: getpid has no preconditions.
    let own = unsafe { found.unwrap()() };
    assert_eq!(u32::try_from(own).unwrap(), std::process::id());
    // SAFETY: the function does not exist, so its type is irrelevant.
    let missing = unsafe { library.symbol::<unsafe extern "C" fn()>(c"zeOfTomorrow") };
    assert!(missing.unwrap_err().to_string().contains("zeOfTomorrow"));
}

#[test]
fn result_codes_have_names() {
    assert_eq!(sys::ZE_RESULT_SUCCESS.name(), Some("ZE_RESULT_SUCCESS"));
    assert_eq!(
        sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY.name(),
        Some("ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY")
    );
    // Newer than Debian 12's headers.
    assert_eq!(
        sys::extensions::ZE_RESULT_ERROR_ADDRESS_NOT_FOUND.name(),
        Some("ZE_RESULT_ERROR_ADDRESS_NOT_FOUND")
    );
    assert_eq!(sys::ze_result_t(0x1234_5678).name(), None);
}
