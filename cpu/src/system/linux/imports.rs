//! The functions that a loaded library imports: its calls of one can be led elsewhere, as profilers of memory do.
//!
//! Source: `dladdr1(3)`, `elf(5)`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{Elf64_Rela, Elf64_Sym};
use rustix::mm::{MprotectFlags, mprotect};

use crate::system::PAGE;

/// The dynamic linker's description of a library, as far as it is public.
#[repr(C)]
struct Library {
    base: usize,
    name: *const c_char,
    /// Pairs of a tag and a value, the last one with tag 0.
    dynamic: *const [usize; 2],
}

/// Has the library with the code at `code` call `to` where it calls the function `name` of another one, from now on. Whether
/// it calls that.
///
/// # Safety
/// `to` is such a function, and stays loaded.
pub unsafe fn redirect(code: usize, name: &CStr, to: usize) -> bool {
    // SAFETY: the dynamic linker's tables of a loaded library stay as they are.
    let slots = unsafe { library(code).map_or_else(Vec::new, |it| slots(&*it, name)) };
    // SAFETY: the caller vouches for the function.
    slots.iter().all(|slot| unsafe { set(*slot, to) }) && !slots.is_empty()
}

/// The library that has `code`.
fn library(code: usize) -> Option<*const Library> {
    /// `RTLD_DL_LINKMAP`.
    const DESCRIPTION: c_int = 2;
    let mut info = MaybeUninit::zeroed();
    let mut library = ptr::null_mut::<c_void>();
    // SAFETY: both are written if the call succeeds.
    let found = unsafe {
        libc::dladdr1(
            code as *const c_void,
            info.as_mut_ptr(),
            &raw mut library,
            DESCRIPTION,
        )
    };
    (found != 0 && !library.is_null()).then_some(library.cast())
}

/// Where `library` has the addresses of the function `name` that it imports.
///
/// # Safety
/// It is the description of a library that stays loaded.
unsafe fn slots(library: &Library, name: &CStr) -> Vec<usize> {
    // `DT_STRTAB`, `DT_SYMTAB`, and the relocations `DT_JMPREL` and `DT_RELA` with their sizes.
    const NAMES: usize = 5;
    const SYMBOLS: usize = 6;
    const RELOCATIONS: [(usize, usize); 2] = [(23, 2), (7, 8)];
    // `R_X86_64_GLOB_DAT`, `R_X86_64_JUMP_SLOT`.
    const FUNCTIONS: [u64; 2] = [6, 7];
    let entry = |tag| {
        // SAFETY: the last entry has tag 0.
        let mut entries = (0..).map(|at| unsafe { *library.dynamic.add(at) });
        let found = entries.find(|entry| entry[0] == tag || entry[0] == 0);
        found.map_or(0, |[_, value]| value)
    };
    let (names, symbols) = (entry(NAMES), entry(SYMBOLS));
    let is_it = |it: &Elf64_Rela| {
        let symbol = (it.r_info >> 32) as usize;
        // SAFETY: relocations have indices of symbols, and these of their names.
        FUNCTIONS.contains(&(it.r_info & u64::from(u32::MAX)))
            && unsafe {
                let symbol = &*(symbols as *const Elf64_Sym).add(symbol);
                CStr::from_ptr((names as *const c_char).add(symbol.st_name as usize)) == name
            }
    };
    let relocations = RELOCATIONS.iter().flat_map(|(table, size)| {
        let count = entry(*size) / size_of::<Elf64_Rela>();
        let table = entry(*table) as *const Elf64_Rela;
        // SAFETY: the table has as many.
        (0..count).map(move |at| unsafe { &*table.add(at) })
    });
    let found = relocations.filter(|it| is_it(it));
    found
        .map(|it| library.base + it.r_offset as usize)
        .collect()
}

/// Sets the address of a function, and leaves its page writable, as it may have others that are not yet set.
///
/// # Safety
/// It is one of a library's imports, and `to` is such a function.
unsafe fn set(slot: usize, to: usize) -> bool {
    let writable = MprotectFlags::READ | MprotectFlags::WRITE;
    let page = (slot / PAGE * PAGE) as *mut c_void;
    // SAFETY: the page is one of the library's data, and other threads read the address at once.
    unsafe {
        let done = mprotect(page, PAGE, writable).is_ok();
        if done {
            (*(slot as *const AtomicUsize)).store(to, Ordering::Release);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn answer() -> libc::pid_t {
        42
    }

    #[test]
    fn a_librarys_calls_of_a_function_are_led_elsewhere() {
        let own = slots as *const () as usize;
        let to = answer as *const () as usize;
        // SAFETY: no other test calls the function, whose type is that of the other.
        unsafe {
            assert_ne!(libc::getpgrp(), 42);
            assert!(redirect(own, c"getpgrp", to));
            assert_eq!(libc::getpgrp(), 42);
            assert!(!redirect(own, c"no_such_function", to));
            assert!(!redirect(0, c"getpgrp", to));
        }
    }
}
