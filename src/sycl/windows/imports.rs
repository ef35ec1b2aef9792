//! The libraries that a library imports functions from.
//!
//! Source: the PE format, "The .idata section".

use std::ffi::{CStr, c_void};
use std::iter;

use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::Diagnostics::Debug::{
    IMAGE_DIRECTORY_ENTRY_IMPORT, IMAGE_NT_HEADERS64,
};
use windows_sys::Win32::System::SystemServices::{IMAGE_DOS_HEADER, IMAGE_IMPORT_DESCRIPTOR};

use crate::shared_library;

/// The library that Windows has chosen for the first of the module's imports whose file name is accepted.
pub(super) fn from(module: HMODULE, is_wanted: impl Fn(&str) -> bool) -> Option<HMODULE> {
    // SAFETY: a loaded library is mapped from its header on, as the format says; offsets are relative to the header, and a
    // descriptor without a name ends the list.
    unsafe {
        let at = |offset: u32| module.byte_add(offset as usize);
        let header = (*module.cast::<IMAGE_DOS_HEADER>()).e_lfanew;
        let header = &*at(header as u32).cast::<IMAGE_NT_HEADERS64>();
        let directory = &header.OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT as usize];
        if directory.VirtualAddress == 0 {
            return None;
        }
        let first = at(directory.VirtualAddress).cast::<IMAGE_IMPORT_DESCRIPTOR>();
        let mut imports = iter::successors(Some(first), |it| Some(it.add(1)))
            .map(|it| &*it)
            .take_while(|import| import.Name != 0);
        let wanted = imports.find(|import| {
            let name = CStr::from_ptr(at(import.Name).cast());
            name.to_str().is_ok_and(&is_wanted)
        })?;
        // The loader has written the functions' addresses here.
        shared_library::containing(*at(wanted.FirstThunk).cast::<*const c_void>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_imports_from_those_that_are_loaded() {
        let module = |name| shared_library::module(name);
        let Some(kernel32) = module(c"kernel32.dll") else {
            panic!("every program has it");
        };
        let found = from(kernel32, |file| file.eq_ignore_ascii_case("ntdll.dll"));
        assert!(found.is_some());
        assert_eq!(found, module(c"ntdll.dll"));
        assert_eq!(from(kernel32, |_| false), None);
    }
}
