//! The shared libraries of this process, by the dynamic linker of Linux.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libloading::os::unix;

/// The path of the library that contains the code at `address`.
pub(crate) fn path_of(address: *const c_void) -> Option<PathBuf> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr accepts any address, and an all-zero `Dl_info` is valid where it finds nothing.
    let found = unsafe {
        libc::dladdr(address, found.as_mut_ptr());
        found.assume_init()
    };
    if found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name is a C string that is valid while the library is loaded. The callers' libraries are never unloaded.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// The path of a loaded library with the file name `name`, with or without a version after it.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let mut paths = Vec::<PathBuf>::new();
    // SAFETY: `add_path` gets the pointer to `paths`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add_path), (&raw mut paths).cast()) };
    paths.into_iter().find(|path| is_named(path, name))
}

/// Whether a library is loaded that the dynamic linker finds by `name`, its SONAME for instance.
pub(crate) fn is_loaded(name: &CStr) -> bool {
    loaded(name).is_some()
}

/// The address of a function of the library that the dynamic linker finds by `name`, if that is loaded and has the function.
pub(crate) fn function(name: &CStr, function: &CStr) -> Option<*const c_void> {
    // SAFETY: the address is not used as anything else.
    unsafe { symbol(&loaded(name)?, function) }
}

/// Looks a function up in `library` and its dependencies.
///
/// # Safety
/// `F` must be the type of the function.
pub(crate) unsafe fn symbol<F: Copy>(library: &unix::Library, name: &CStr) -> Option<F> {
    // SAFETY: the caller guarantees that `F` is the type of the function; the library stays open.
    unsafe { library.get::<F>(name) }.ok().map(|found| *found)
}

/// The library of that name, if it is loaded. The drop restores the number of its references.
fn loaded(name: &CStr) -> Option<unix::Library> {
    let name = OsStr::from_bytes(name.to_bytes());
    // SAFETY: with RTLD_NOLOAD nothing is loaded, so no initialiser runs.
    unsafe { unix::Library::open(Some(name), libc::RTLD_LAZY | libc::RTLD_NOLOAD) }.ok()
}

/// Whether a file is `name` itself, or `name` with a version.
fn is_named(path: &Path, name: &str) -> bool {
    path.file_name()
        .and_then(OsStr::to_str)
        .and_then(|file| file.strip_prefix(name))
        .is_some_and(|version| version.is_empty() || version.starts_with('.'))
}

/// Adds one library's path to the list behind `paths`; returns 0 to continue the iteration.
///
/// # Safety
/// `info` must be a valid description, and `paths` a `Vec<PathBuf>` that nothing else uses during the call.
unsafe extern "C" fn add_path(
    info: *mut libc::dl_phdr_info,
    _: usize,
    paths: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr passes a valid description, and the `paths` of `find`.
    let (info, paths) = unsafe { (&*info, &mut *paths.cast::<Vec<PathBuf>>()) };
    // SAFETY: the name is a C string, empty for the program, that is valid under the dynamic linker's lock, which is held here.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) };
    paths.push(PathBuf::from(OsStr::from_bytes(name.to_bytes())));
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaded_library_is_found_by_its_file_name() {
        assert!(find("libc.so").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("libc.s"), None);
        assert_eq!(find("libDPCTLSyclInterface.so"), None);
    }

    #[test]
    fn a_version_may_follow_the_name() {
        assert!(is_named(Path::new("/a/libsycl.so.9"), "libsycl.so"));
        assert!(is_named(Path::new("/a/libsycl.so"), "libsycl.so"));
        assert!(!is_named(Path::new("/a/libsycl.so.9/other"), "libsycl.so"));
        assert!(!is_named(Path::new("/a/libsycl.sox"), "libsycl.so"));
        assert!(!is_named(Path::new(""), "libsycl.so"));
    }

    #[test]
    fn the_library_of_a_function_is_found() {
        assert!(path_of(path_of as *const c_void).is_some());
        assert_eq!(path_of(std::ptr::null()), None);
    }

    #[test]
    fn loaded_libraries_have_functions() {
        assert!(is_loaded(c"libc.so.6") && !is_loaded(c"libnone.so.1"));
        assert!(function(c"libc.so.6", c"getpid").is_some());
        assert_eq!(function(c"libc.so.6", c"zeInit"), None);
        assert_eq!(function(c"libnone.so.1", c"getpid"), None);
    }
}
