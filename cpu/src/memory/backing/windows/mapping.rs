//! Memory that the system gives, freed when dropped.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, MEMORY_BASIC_INFORMATION, PAGE_EXECUTE_READ,
    PAGE_EXECUTE_READWRITE, PAGE_EXECUTE_WRITECOPY, PAGE_NOACCESS, PAGE_READONLY, PAGE_READWRITE,
    PAGE_WRITECOPY, VirtualAlloc, VirtualFree, VirtualProtect, VirtualQuery,
};

use crate::memory::backing::pages::Pages;
use crate::system::PAGE;

/// The alignment of what the system gives.
const GRANULARITY: usize = 64 << 10;

/// An owned range of pages.
#[derive(Debug)]
pub struct Mapping {
    /// Where the reservation begins that has the pages.
    base: usize,
    address: usize,
    length: usize,
}

impl Mapping {
    /// At least `length` bytes of zeros aligned to `alignment`.
    pub fn anonymous(length: usize, alignment: usize) -> Option<Self> {
        let mapping = Self::closed(length, alignment)?;
        let place = mapping.address as *const _;
        // SAFETY: the pages are of the new reservation, and no one uses them.
        let given = unsafe { VirtualAlloc(place, mapping.length, MEM_COMMIT, PAGE_READWRITE) };
        (!given.is_null()).then_some(mapping)
    }

    /// As many addresses, inaccessible.
    pub fn closed(length: usize, alignment: usize) -> Option<Self> {
        let length = length.checked_next_multiple_of(PAGE)?;
        // Enough to contain an aligned range of `length` bytes.
        let whole = length.checked_add(alignment.saturating_sub(GRANULARITY))?;
        // SAFETY: a reservation at an address of the system's choice replaces nothing.
        let base = unsafe { VirtualAlloc(ptr::null(), whole, MEM_RESERVE, PAGE_NOACCESS) };
        (!base.is_null()).then(|| Self {
            base: base.addr(),
            address: base.addr().next_multiple_of(alignment.max(1)),
            length,
        })
    }

    /// Files are not mapped.
    pub fn of_file(_: &File, _: u64, _: usize) -> Option<Self> {
        None
    }

    /// Files are not mapped.
    pub fn of_external(_: &File, _: usize, _: usize) -> Option<Self> {
        None
    }

    /// Address of the first byte, on a page boundary.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Length in bytes, a multiple of the page size.
    pub fn length(&self) -> usize {
        self.length
    }

    /// All of its pages.
    pub fn pages(&self) -> Pages<'_> {
        // SAFETY: it owns them, and the result borrows it.
        unsafe { Pages::new(self.address, self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it owns the reservation, which no one uses after it.
        unsafe { VirtualFree(self.base as *mut _, 0, MEM_RELEASE) };
    }
}

impl Pages<'_> {
    /// Makes them zeros.
    ///
    /// # Safety
    /// No one may use the pages.
    pub unsafe fn clear(self) -> io::Result<()> {
        // SAFETY: the mapping owns the pages, and the caller vouches that they have no users.
        unsafe { ptr::write_bytes(self.address as *mut u8, 0, self.length) };
        Ok(())
    }

    /// Makes them inaccessible.
    ///
    /// # Safety
    /// No one may use the pages.
    pub unsafe fn close(self) {
        let mut before = 0;
        let place = self.address as *const _;
        // SAFETY: the mapping owns the pages, and the caller vouches that they have no users.
        unsafe { VirtualProtect(place, self.length, PAGE_NOACCESS, &raw mut before) };
    }
}

/// What programs may read but not write to.
const READ_ONLY: u32 = PAGE_READONLY | PAGE_EXECUTE_READ;
/// What they may do both with.
const WRITABLE: u32 =
    PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;

/// Whether all pages have memory, of whomever, and may be read and, if asked for, written to.
pub fn is_accessible(pages: &Range<usize>, to_write: bool) -> bool {
    let enough = if to_write {
        WRITABLE
    } else {
        WRITABLE | READ_ONLY
    };
    let mut address = pages.start;
    while address < pages.end {
        let mut about = MaybeUninit::<MEMORY_BASIC_INFORMATION>::zeroed();
        let room = size_of::<MEMORY_BASIC_INFORMATION>();
        // SAFETY: the call writes the structure, for which zeros are valid, and reads no memory of the pages.
        let about = unsafe {
            let written = VirtualQuery(address as *const _, about.as_mut_ptr(), room);
            (written != 0).then(|| about.assume_init())
        };
        match about {
            Some(about) if about.State == MEM_COMMIT && about.Protect & enough != 0 => {
                address = about.BaseAddress.addr() + about.RegionSize;
            }
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn memory_is_aligned_zero_and_gone_after_its_drop() {
        for (length, alignment) in [(1, 1), (PAGE, PAGE), (3 << 20, 2 << 20), (100, 1 << 30)] {
            let mapping = Mapping::anonymous(length, alignment).unwrap();
            assert!(mapping.address.is_multiple_of(alignment) && mapping.length >= length);
            let pages = mapping.address..mapping.address + mapping.length;
            assert!(is_accessible(&pages, true));
            // SAFETY: the bytes are the mapping's, and no one else knows them.
            let bytes = unsafe { std::slice::from_raw_parts_mut(pages.start as *mut u8, length) };
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(1);
            drop(mapping);
            assert!(!is_accessible(&pages, true));
        }
    }

    #[test]
    fn addresses_without_memory_are_not_mapped() {
        let closed = Mapping::closed(PAGE, PAGE).unwrap();
        assert!(!is_accessible(
            &(closed.address..closed.address + PAGE),
            false
        ));
        assert!(Mapping::anonymous(1 << 60, PAGE).is_none());
    }
}
