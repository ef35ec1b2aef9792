//! Where code of this process comes from.

use std::ffi::{CStr, OsStr, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The name under which SYCL runtimes open the Level Zero loader.
pub(super) const LOADER: &CStr = c"libze_loader.so.1";

/// The file that holds the function at `address`.
pub(super) fn file_of(address: *const ()) -> Option<PathBuf> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr accepts any address and fills in `found` when it answers something but 0.
    let known = unsafe { libc::dladdr(address.cast(), found.as_mut_ptr()) } != 0;
    // SAFETY: all-zero is a valid `Dl_info`, so it is initialised either way.
    let found = unsafe { found.assume_init() };
    if !known || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr points to the name of a loaded object, which stays while that is loaded; libraries of Level Zero
    // and this code are never unloaded.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// Whether a library of that name is in the process; loads nothing.
pub(super) fn is_loaded(name: &CStr) -> bool {
    with_loaded(name, |_| ()).is_some()
}

/// The address of a function of the library of that name, if both are in the process; loads nothing.
pub(super) fn function_of(name: &CStr, function: &CStr) -> Option<*const ()> {
    // SAFETY: the handle is open; dlsym only looks.
    let found = with_loaded(name, |handle| unsafe {
        libc::dlsym(handle, function.as_ptr())
    });
    found
        .filter(|address| !address.is_null())
        .map(|address| address.cast_const().cast())
}

fn with_loaded<T>(name: &CStr, then: impl FnOnce(*mut c_void) -> T) -> Option<T> {
    // SAFETY: RTLD_NOLOAD only looks; the handle that it may give is closed again, which leaves the count as it was.
    unsafe {
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        let answer = then(handle);
        libc::dlclose(handle);
        Some(answer)
    }
}
