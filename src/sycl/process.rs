//! Which libraries are in this process.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The library whose file name begins with `name`, if it is in the process: with or without a version behind it.
pub(super) fn loaded(name: &str) -> Option<PathBuf> {
    let mut paths = Vec::<PathBuf>::new();
    // SAFETY: `note` gets back the pointer to `paths`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut paths).cast()) };
    paths.into_iter().find(|path| is_named(path, name))
}

/// Whether a file is `name` itself, or `name` and a version.
fn is_named(path: &Path, name: &str) -> bool {
    path.file_name()
        .and_then(OsStr::to_str)
        .and_then(|file| file.strip_prefix(name))
        .is_some_and(|version| version.is_empty() || version.starts_with('.'))
}

/// Adds one library's path to the list behind `paths`; 0 asks for the next one.
unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, paths: *mut c_void) -> c_int {
    // SAFETY: dl_iterate_phdr gives a valid description, and hands `paths` through from `loaded`.
    let (info, paths) = unsafe { (&*info, &mut *paths.cast::<Vec<PathBuf>>()) };
    if !info.dlpi_name.is_null() {
        // SAFETY: the name is a C string that stays while the linker's lock is held, which it is here.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) };
        paths.push(PathBuf::from(OsStr::from_bytes(name.to_bytes())));
    }
    0
}

/// The library that holds the code at `address`.
pub(super) fn library_of(address: *const c_void) -> Option<PathBuf> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr accepts any address; all-zero is a valid `Dl_info`, should it answer that it knows nothing.
    let found = unsafe {
        libc::dladdr(address, found.as_mut_ptr());
        found.assume_init()
    };
    if found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name stays while its library is loaded; dpctl's library, which is never closed, needs it.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_of_this_process_is_found_by_its_name() {
        assert!(loaded("libc.so").is_some_and(|path| path.is_absolute()));
        assert_eq!(loaded("libc.s"), None);
        assert_eq!(loaded("libDPCTLSyclInterface.so"), None);
    }

    #[test]
    fn versions_belong_to_the_name_and_other_names_do_not() {
        assert!(is_named(Path::new("/a/libsycl.so.9"), "libsycl.so"));
        assert!(is_named(Path::new("/a/libsycl.so"), "libsycl.so"));
        assert!(!is_named(Path::new("/a/libsycl.so.9/other"), "libsycl.so"));
        assert!(!is_named(Path::new("/a/libsycl.sox"), "libsycl.so"));
        assert!(!is_named(Path::new(""), "libsycl.so"));
    }

    #[test]
    fn code_has_a_library() {
        assert!(library_of(library_of as *const c_void).is_some());
        assert_eq!(library_of(std::ptr::null()), None);
    }
}
