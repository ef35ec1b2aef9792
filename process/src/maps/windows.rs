//! The libraries of this process, as Windows has loaded them.

use std::ffi::OsString;
use std::os::windows::ffi::OsStringExt;
use std::path::PathBuf;
use std::ptr;

use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
    GetModuleFileNameW, GetModuleHandleExW,
};

/// The longest path that Windows has, in UTF-16 units.
const LONGEST_PATH: usize = 32_768;

/// The library that holds the code or data at `address`.
#[must_use]
pub fn module_at(address: usize) -> Option<HMODULE> {
    // Windows would answer with the program.
    if address == 0 {
        return None;
    }
    let flags =
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    let mut module: HMODULE = ptr::null_mut();
    // SAFETY: with these flags the second argument is any address, and the handle is not owned.
    let found = unsafe { GetModuleHandleExW(flags, address as *const u16, &raw mut module) };
    (found != 0).then_some(module)
}

/// The path of the file that holds the code or data at `address`.
#[must_use]
pub fn file_at(address: usize) -> Option<PathBuf> {
    let module = module_at(address)?;
    let mut name = vec![0_u16; LONGEST_PATH];
    // SAFETY: the buffer has that many units; the call fails for a library that is gone.
    let length = unsafe { GetModuleFileNameW(module, name.as_mut_ptr(), LONGEST_PATH as u32) };
    let name = &name[..length as usize];
    (!name.is_empty()).then(|| PathBuf::from(OsString::from_wide(name)))
}
