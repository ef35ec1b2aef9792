//! The libraries of this process.

use std::path::PathBuf;
use std::ptr;

use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN, GetModuleHandleExW,
};
use windows_sys::Win32::System::ProcessStatus::K32EnumProcessModules;
use windows_sys::Win32::System::Threading::GetCurrentProcess;
pub use zeusm_process::maps::file_at as path_of;

/// The most libraries that are looked at.
const MOST: usize = 1024;

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
    // A handle is the address at which the library begins.
    modules
        .filter_map(|module| path_of(module.addr()))
        .collect()
}

/// Keeps the library with the code at `address` loaded until the process ends.
pub fn keep_loaded(address: usize) {
    let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN;
    let mut module: HMODULE = ptr::null_mut();
    // SAFETY: with these flags the second argument is any address; the reference lasts as long as the process.
    unsafe { GetModuleHandleExW(flags, address as *const u16, &raw mut module) };
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
