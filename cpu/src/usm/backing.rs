//! Where the bytes of an allocation come from: the C heap when small, a mapping of their own when large.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr;

/// From this size on, memory is mapped, so that freeing returns it to the system at once.
const MAPPED_FROM: usize = 256 << 10;
/// From this size on, a mapping asks for huge pages, which makes the first touch of large memory several times cheaper.
const HUGE_FROM: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;
/// The page size that properties report.
pub const PAGE: usize = 4096;
/// Allocations are aligned to this when the caller does not ask for more: a cache line, and any SIMD vector.
pub const LEAST_ALIGNMENT: usize = 64;
/// The largest alignment that can be asked for.
pub const MOST_ALIGNMENT: usize = HUGE_PAGE;

/// Owned, uninitialised bytes.
#[derive(Debug)]
pub enum Backing {
    /// From the heap.
    Heap {
        /// Address of the first byte.
        address: usize,
        /// What the heap was asked for.
        layout: Layout,
    },
    /// From the system.
    Mapping {
        /// Address of the first byte, on a page boundary.
        address: usize,
        /// Length in bytes, a multiple of the page size.
        length: usize,
    },
}

impl Backing {
    /// `size` bytes aligned to `alignment`, a power of two up to [`MOST_ALIGNMENT`]; `None` when there are none.
    pub fn new(size: usize, alignment: usize) -> Option<Self> {
        let alignment = alignment.max(LEAST_ALIGNMENT);
        if size >= MAPPED_FROM {
            return map(size, alignment);
        }
        let layout = Layout::from_size_align(size, alignment).ok()?;
        // SAFETY: the size is not zero, as callers check.
        let memory = unsafe { alloc(layout) };
        (!memory.is_null()).then_some(Self::Heap {
            address: memory as usize,
            layout,
        })
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        match self {
            Self::Heap { address, .. } | Self::Mapping { address, .. } => *address,
        }
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        match *self {
            // SAFETY: allocated with this layout, and freed only here.
            Self::Heap { address, layout } => unsafe { dealloc(address as *mut u8, layout) },
            Self::Mapping { address, length } => unmap(address, length),
        }
    }
}

fn map(size: usize, alignment: usize) -> Option<Backing> {
    let huge = size >= HUGE_FROM;
    let alignment = if huge { HUGE_PAGE } else { alignment };
    let length = size.checked_next_multiple_of(PAGE)?;
    // Enough to cut an aligned piece out of it.
    let slack = if alignment > PAGE { alignment } else { 0 };
    let reserved = length.checked_add(slack)?;
    // SAFETY: an anonymous mapping at an address of the system's choice disturbs nobody.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            reserved,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return None;
    }
    let start = start as usize;
    let address = start.next_multiple_of(alignment.max(PAGE));
    unmap(start, address - start);
    unmap(address + length, start + reserved - (address + length));
    if huge {
        // SAFETY: advice about a mapping of ours; a system without huge pages ignores it.
        unsafe { libc::madvise(address as *mut _, length, libc::MADV_HUGEPAGE) };
    }
    Some(Backing::Mapping { address, length })
}

fn unmap(address: usize, length: usize) {
    if length > 0 {
        // SAFETY: callers pass a part of a mapping of ours that nobody uses any more.
        unsafe { libc::munmap(address as *mut _, length) };
    }
}
