//! The libraries that the dynamic linker has loaded, and what they export.

use std::ffi::{CStr, c_void};
use std::mem::{MaybeUninit, transmute_copy};
use std::path::{Path, PathBuf};

use zeusm_process::maps;
pub use zeusm_process::maps::file_at as path_of;

/// The name of the library that has `address`, and where the dynamic linker has placed its file. Other mappings of the file, by
/// a debugger or a profiler, do not count.
///
/// Source: `dladdr(3)`.
pub fn library_of(address: usize) -> (Option<String>, Option<usize>) {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the structure is written if the call succeeds, and zeros are valid for it.
    let (found, info) = unsafe {
        (
            libc::dladdr(address as *const c_void, info.as_mut_ptr()),
            info.assume_init(),
        )
    };
    if found == 0 || info.dli_fname.is_null() {
        return (None, None);
    }
    // SAFETY: the loader's name of a loaded library is a C string.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy();
    let name = Path::new(&*path).file_name();
    let name = name.map(|name| name.to_string_lossy().into_owned());
    (name, Some(info.dli_fbase as usize))
}

/// The paths of the files that are mapped, libraries among them.
pub fn loaded() -> Vec<PathBuf> {
    let mappings = maps::mappings().into_iter();
    let mut paths: Vec<PathBuf> = mappings.filter_map(|mapping| mapping.path).collect();
    paths.dedup();
    paths
}

/// A function of the process, by its name, such as one of its Python.
///
/// # Safety
/// `F` is its type.
pub unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
    // SAFETY: the name is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: the caller vouches for the type, a function pointer.
    (!found.is_null()).then(|| unsafe { transmute_copy(&found) })
}
