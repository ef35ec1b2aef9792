//! The libraries of this process.

use std::ffi::OsString;
use std::os::windows::ffi::OsStringExt;
use std::path::PathBuf;
use std::ptr;

use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN,
    GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, GetModuleFileNameW, GetModuleHandleExW,
};
use windows_sys::Win32::System::ProcessStatus::K32EnumProcessModules;
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// The longest path that Windows has, in UTF-16 units.
const LONGEST_PATH: usize = 32_768;
/// The most libraries that are looked at.
const MOST: usize = 1024;

/// The path of the library that has `address`.
pub fn path_of(address: usize) -> Option<PathBuf> {
    module_of(address, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT).and_then(path)
}

/// The paths of the libraries in the process.
pub fn loaded() -> Vec<PathBuf> {
    let mut modules: Vec<HMODULE> = vec![ptr::null_mut(); MOST];
    let room = size_of_val(&*modules) as u32;
    let mut needed = 0;
    // SAFETY: the array has that many bytes; the handles are not owned.
    let done = unsafe {
        let process = GetCurrentProcess();
        K32EnumProcessModules(process, modules.as_mut_ptr(), room, &raw mut needed)
    };
    let count = if done == 0 { 0 } else { needed as usize };
    let modules = modules.into_iter().take(count / size_of::<HMODULE>());
    modules.filter_map(path).collect()
}

/// Keeps the library with the code at `address` loaded until the process ends.
pub fn keep_loaded(address: usize) {
    module_of(address, GET_MODULE_HANDLE_EX_FLAG_PIN);
}

fn module_of(address: usize, flags: u32) -> Option<HMODULE> {
    // Windows would answer with the program.
    if address == 0 {
        return None;
    }
    let flags = flags | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS;
    let mut module: HMODULE = ptr::null_mut();
    // SAFETY: with these flags the second argument is any address, and the handle is not owned.
    let found = unsafe { GetModuleHandleExW(flags, address as *const u16, &raw mut module) };
    (found != 0).then_some(module)
}

/// The file of a library.
fn path(module: HMODULE) -> Option<PathBuf> {
    let mut name = vec![0_u16; LONGEST_PATH];
    // SAFETY: the buffer has that many units; the call fails for a library that is gone.
    let length = unsafe { GetModuleFileNameW(module, name.as_mut_ptr(), LONGEST_PATH as u32) };
    let name = &name[..length as usize];
    (!name.is_empty()).then(|| PathBuf::from(OsString::from_wide(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_in_one_of_the_loaded_libraries() {
        let here = path_of(path_of as fn(usize) -> _ as usize);
        assert!(here.is_some_and(|path| loaded().contains(&path)));
        assert_eq!(path_of(0), None);
    }
}
