//! Memory mappings, unmapped when dropped.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr;

use rustix::mm::{
    Advice, MapFlags, MprotectFlags, MremapFlags, MsyncFlags, ProtFlags, madvise, mmap,
    mmap_anonymous, mprotect, mremap_fixed, msync, munmap,
};
use zeusm_process::maps;

use crate::abi::strictness::is_strict;
use crate::memory::backing::pages::Pages;
use crate::system::PAGE;

/// From this size on, a mapping asks for huge pages, which makes the first touch of large memory several times cheaper.
const HUGE_PAGE_THRESHOLD: usize = 4 << 20;
pub const HUGE_PAGE: usize = 2 << 20;

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// An owned mapping.
#[derive(Debug)]
pub struct Mapping {
    address: usize,
    length: usize,
}

impl Mapping {
    /// At least `length` bytes of zeros aligned to `alignment`, private to the process, with huge pages when large.
    pub fn anonymous(length: usize, alignment: usize) -> Option<Self> {
        let length = length.checked_next_multiple_of(PAGE)?;
        let alignment = alignment.max(best_alignment(length));
        Self::reserve(length, alignment, READ_WRITE)
    }

    /// The same, inaccessible.
    pub fn closed(length: usize, alignment: usize) -> Option<Self> {
        let length = length.checked_next_multiple_of(PAGE)?;
        Self::reserve(length, alignment.max(PAGE), ProtFlags::empty())
    }

    /// `length` bytes of zeros, a multiple of a page, aligned to `alignment`, at least a page, private to the process.
    fn reserve(length: usize, alignment: usize, protection: ProtFlags) -> Option<Self> {
        // Enough to contain an aligned range of `length` bytes.
        let whole = length.checked_add(alignment - PAGE)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: an anonymous mapping at an address of the system's choice replaces no other one.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), whole, protection, flags) }.ok()?;
        let start = start as usize;
        let address = start.next_multiple_of(alignment);
        let end = address + length;
        // SAFETY: both ranges are of the new mapping, and no one uses them.
        unsafe {
            unmap(start, address - start);
            unmap(end, start + whole - end);
        }
        let mapping = Self { address, length };
        mapping.pages().want_huge_pages();
        Some(mapping)
    }

    /// `length` bytes of `file` from `offset` on, a multiple of the page size, shared with every process that maps it.
    pub fn of_file(file: &File, offset: u64, length: usize) -> Option<Self> {
        let flags = MapFlags::SHARED;
        // SAFETY: a mapping at an address of the system's choice replaces no other one.
        let address =
            unsafe { mmap(ptr::null_mut(), length, READ_WRITE, flags, file, offset) }.ok()?;
        let mapping = Self {
            address: address as usize,
            length,
        };
        mapping.pages().want_huge_pages();
        Some(mapping)
    }

    /// The first `size` bytes of any file that can be mapped, aligned to `alignment`; `None` when it is shorter or the system
    /// refuses.
    pub fn of_external(file: &File, size: usize, alignment: usize) -> Option<Self> {
        let length = size.checked_next_multiple_of(PAGE)?;
        // What is no regular file may not know its length, which is 0 then; access beyond the end of a file that does would
        // end the process.
        let about = file.metadata().ok()?;
        let is_known = about.is_file() || about.len() != 0;
        if is_known && about.len().checked_next_multiple_of(PAGE as u64)? < length as u64 {
            return None;
        }
        let mapping = Self::of_file(file, 0, length)?;
        if mapping.address.is_multiple_of(alignment.max(1)) {
            return Some(mapping);
        }
        let aligned = Self::closed(length, alignment)?;
        // SAFETY: the mapping at that address is ours, of the same length, and no one uses it.
        unsafe { mapping.move_over(aligned.address) }.ok()?;
        Some(aligned)
    }

    /// Moves the pages to `address` in one step, replacing what is mapped there.
    ///
    /// # Safety
    /// Another mapping of this module must own the replaced pages, and whoever uses them must expect the bytes of this one.
    pub unsafe fn move_over(self, address: usize) -> io::Result<()> {
        let (own, to) = (self.address as *mut _, address as *mut _);
        // SAFETY: this mapping owns its pages, and the caller vouches for the others.
        unsafe { mremap_fixed(own, self.length, self.length, MremapFlags::MAYMOVE, to) }?;
        std::mem::forget(self);
        Ok(())
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

impl Pages<'_> {
    /// Maps the beginning of `file` there in place of what is mapped.
    ///
    /// # Safety
    /// Whoever uses the pages must expect the file's bytes.
    pub unsafe fn replace(self, file: &File) -> io::Result<()> {
        // SAFETY: the mapping owns the pages, and the caller vouches for their users.
        unsafe { map_over(self.address, self.length, MapFlags::SHARED, Some(file)) }?;
        self.want_huge_pages();
        Ok(())
    }

    /// Maps private zeros there in place of what is mapped.
    ///
    /// # Safety
    /// No one may use the pages.
    pub unsafe fn clear(self) -> io::Result<()> {
        // SAFETY: the mapping owns the pages, and the caller vouches that they have no users.
        unsafe { map_over(self.address, self.length, MapFlags::PRIVATE, None) }
    }

    /// Makes them inaccessible.
    ///
    /// # Safety
    /// No one may use the pages.
    pub unsafe fn close(self) {
        // SAFETY: the mapping owns the pages, and the caller vouches that they have no users.
        let _ = unsafe { mprotect(self.address as *mut _, self.length, MprotectFlags::empty()) };
    }

    /// Huge pages make the first touch of large memory several times cheaper.
    fn want_huge_pages(self) {
        if self.length >= HUGE_PAGE_THRESHOLD {
            // SAFETY: advice about a mapping of ours; a system without huge pages ignores it.
            let _ = unsafe { madvise(self.address as *mut _, self.length, Advice::LinuxHugepage) };
        }
    }
}

/// Whether all pages are mapped, by whomever, and may be read and, if asked for, written to. Only strictness asks for the latter, as
/// the system's list of mappings takes half a millisecond.
pub fn is_accessible(pages: &Range<usize>, to_write: bool) -> bool {
    // SAFETY: this only asks.
    let is_mapped = unsafe { msync(pages.start as *mut _, pages.len(), MsyncFlags::ASYNC) }.is_ok();
    is_mapped && (!is_strict() || has_protection(pages, to_write))
}

/// Whether all pages may be read and, if asked for, written to.
fn has_protection(pages: &Range<usize>, to_write: bool) -> bool {
    let end = maps::mappings()
        .into_iter()
        .filter(|it| it.is_readable && (it.is_writable || !to_write))
        .fold(pages.start, |end, it| {
            if it.range.contains(&end) {
                it.range.end
            } else {
                end
            }
        });
    end >= pages.end
}

/// Maps the beginning of `file` privately (copy on write) over `length` bytes at `address`.
///
/// # Safety
/// A mapping must own the pages, and whoever uses them must expect the file's bytes.
pub unsafe fn replace_privately(address: usize, length: usize, file: &File) -> io::Result<()> {
    // SAFETY: the caller vouches for the pages.
    unsafe { map_over(address, length, MapFlags::PRIVATE, Some(file)) }
}

/// # Safety
/// A mapping must own the pages, and whoever uses them must expect what is mapped there.
unsafe fn map_over(
    address: usize,
    length: usize,
    flags: MapFlags,
    file: Option<&File>,
) -> io::Result<()> {
    let address = address as *mut _;
    let flags = flags | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: the caller vouches for the pages.
    unsafe {
        match file {
            Some(file) => mmap(address, length, READ_WRITE, flags, file, 0),
            None => mmap_anonymous(address, length, READ_WRITE, flags),
        }
    }?;
    Ok(())
}

/// The least alignment of `length` bytes: that of a huge page, if they are enough to ask for such pages.
fn best_alignment(length: usize) -> usize {
    if length >= HUGE_PAGE_THRESHOLD {
        HUGE_PAGE
    } else {
        PAGE
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping owns its pages, which no one uses after it.
        unsafe { unmap(self.address, self.length) };
    }
}

/// # Safety
/// A mapping must own the range, give it up, and no one may use it.
unsafe fn unmap(address: usize, length: usize) {
    if length > 0 {
        // SAFETY: the caller vouches for the range.
        let _ = unsafe { munmap(address as *mut _, length) };
    }
}
