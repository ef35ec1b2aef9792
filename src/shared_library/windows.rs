//! The shared libraries of this process, by the loader of Windows.

use std::ffi::{CStr, c_void};
use std::mem;
use std::path::PathBuf;

use windows_sys::Win32::Foundation::{HMODULE, MAX_PATH};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use zeusm_process::maps;

/// The library that contains the code or data at `address`.
pub(crate) fn containing(address: *const c_void) -> Option<HMODULE> {
    maps::module_at(address.addr())
}

/// The path of the library that contains the code or data at `address`.
pub(crate) fn path_of(address: *const c_void) -> Option<PathBuf> {
    maps::file_at(address.addr()).map(plain)
}

/// A path as users write it, where it is short enough: one that was opened by a canonical path begins with `\\?\`.
fn plain(path: PathBuf) -> PathBuf {
    let shorter = path.to_str().and_then(|path| path.strip_prefix(r"\\?\"));
    match shorter.filter(|path| path.len() < MAX_PATH as usize && path.get(1..3) == Some(r":\")) {
        Some(shorter) => PathBuf::from(shorter),
        None => path,
    }
}

/// The address of a function of the library with the file name `name`, if that is loaded and has the function.
pub(crate) fn function(name: &CStr, function: &CStr) -> Option<*const c_void> {
    // SAFETY: the address is not used as anything else.
    unsafe { symbol(module(name)?, function) }
}

/// Looks a function up in a library.
///
/// # Safety
/// `module` must be loaded, and `F` the type of the function.
pub(crate) unsafe fn symbol<F: Copy>(module: HMODULE, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
    // SAFETY: the caller guarantees that the library is loaded; the name is a C string.
    let found = unsafe { GetProcAddress(module, name.as_ptr().cast()) }?;
    // SAFETY: the caller guarantees that `F` is the type of the function.
    Some(unsafe { mem::transmute_copy(&found) })
}

/// The library with the file name `name`, if it is loaded.
pub(crate) fn module(name: &CStr) -> Option<HMODULE> {
    // SAFETY: the name is a C string; the handle is not owned.
    let module = unsafe { GetModuleHandleA(name.as_ptr().cast()) };
    (!module.is_null()).then_some(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_a_function_is_found() {
        let found = function(c"kernel32.dll", c"ExitProcess").and_then(path_of);
        let file = found.map(|path| path.to_string_lossy().to_lowercase());
        assert!(file.is_some_and(|path| path.ends_with("kernel32.dll")));
        assert_eq!(path_of(std::ptr::null()), None);
    }

    #[test]
    fn a_short_path_is_as_users_write_it() {
        let plain = |path: &str| plain(PathBuf::from(path)).display().to_string();
        assert_eq!(plain(r"\\?\C:\a\ü.dll"), r"C:\a\ü.dll");
        assert_eq!(plain(r"C:\a.dll"), r"C:\a.dll");
        assert_eq!(plain(r"\\?\UNC\a\b.dll"), r"\\?\UNC\a\b.dll");
        let long = format!(r"\\?\C:\{}.dll", "a".repeat(300));
        assert_eq!(plain(&long), long);
    }

    #[test]
    fn loaded_libraries_have_functions() {
        assert!(function(c"kernel32.dll", c"ExitProcess").is_some());
        assert_eq!(function(c"kernel32.dll", c"zeInit"), None);
        assert_eq!(function(c"none.dll", c"ExitProcess"), None);
    }
}
