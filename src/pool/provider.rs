//! Where a pool gets its memory from.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::error::Result;

/// A source of memory in large pieces, which a pool divides.
///
/// A pool holds none of its locks while it calls a provider, and calls it from any thread.
///
/// # Safety
/// What [`allocate`](Self::allocate) returns must be `size` bytes at a multiple of `alignment` that overlap nothing
/// else in use in the process, until [`free`](Self::free) gets them back. Nothing here is ever followed by the pool:
/// the memory need not be the host's.
pub unsafe trait Provider: Send + Sync + 'static {
    /// Allocates `size` bytes, never 0, at an `alignment` of 0 (the provider's choice, of at least
    /// [`SMALLEST_ALIGNMENT`](super::SMALLEST_ALIGNMENT)) or a power of two.
    ///
    /// # Errors
    /// Whatever stands in the way. The pool then gives back what it holds unused, and asks again.
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>>;

    /// Takes back what [`allocate`](Self::allocate) returned. A failure has nobody to be told to.
    ///
    /// # Safety
    /// `address` came from this provider with `size`, is given back once, and nothing uses it any more.
    unsafe fn free(&self, address: NonNull<c_void>, size: usize);

    /// Whether the host and a device may use two blocks of one allocation at the same time. Where they may not, each
    /// block of the pool is an allocation of its own, cached when it is freed.
    fn shares_allocations(&self) -> bool {
        true
    }
}

/// A piece of a provider's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) base: NonNull<c_void>,
    pub(super) size: usize,
}

// SAFETY: a chunk is an address and a length; nobody follows the address through it.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}
