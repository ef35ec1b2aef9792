//! Which library a call comes from.

use std::ffi::{CStr, OsStr, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// How the files of SYCL's runtime and of its adapters for Level Zero begin.
const SYCL: [&str; 3] = ["libsycl", "libur_", "libpi_"];

/// Whether the code at `caller` is SYCL's.
pub(crate) fn is_sycl(caller: *const c_void) -> bool {
    let file = file_of(caller);
    let name = file.as_ref().and_then(|file| file.file_name()?.to_str());
    name.is_some_and(|name| SYCL.iter().any(|prefix| name.starts_with(prefix)))
}

/// The file that the code at `address` was loaded from.
pub(crate) fn file_of(address: *const c_void) -> Option<PathBuf> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr accepts any address, and an all-zero `Dl_info` is valid.
    let found = unsafe {
        libc::dladdr(address, found.as_mut_ptr());
        found.assume_init()
    };
    if found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name of a loaded object is a string that stays while it is loaded.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}
