//! Variables that other libraries read.

use std::env;
use std::ffi::{CStr, c_char, c_int};
use std::mem::transmute;

use windows_sys::Win32::Foundation::FARPROC;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};

/// The C library of Microsoft's compilers, with a copy of the variables that its `getenv` reads.
const C_LIBRARY: &CStr = c"ucrtbase.dll";

/// Sets a variable, unless it is set, for this process and for libraries that read it by Microsoft's C library.
///
/// Only `zeInit` and the load of the library call this, which come at the start of a program, as the import of zeusm calls them: threads
/// that read the environment at the same time are the program's risk, as with any `_putenv`.
pub fn set_default(name: &CStr, value: &CStr) {
    type Put = Option<unsafe extern "C" fn(*const c_char, *const c_char) -> c_int>;
    let (own_name, own_value) = (name.to_string_lossy(), value.to_string_lossy());
    if env::var_os(&*own_name).is_some() {
        return;
    }
    // SAFETY: the system and Rust read variables under a lock.
    unsafe { env::set_var(&*own_name, &*own_value) };
    // SAFETY: all names are C strings. The handle is not owned, and null if the library is not loaded.
    let put = unsafe {
        let library = GetModuleHandleA(C_LIBRARY.as_ptr().cast());
        (!library.is_null()).then(|| GetProcAddress(library, c"_putenv_s".as_ptr().cast()))
    };
    // SAFETY: the function of this name has this type.
    if let Some(put) = put.and_then(|put| unsafe { transmute::<FARPROC, Put>(put) }) {
        // SAFETY: both are C strings.
        unsafe { put(name.as_ptr(), value.as_ptr()) };
    }
}
