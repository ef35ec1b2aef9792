//! The provider: the source of a pool's memory.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::error::Result;
use crate::history::Place;

/// A source of memory in large chunks, which a pool divides into blocks.
///
/// A pool holds none of its locks while it calls a provider, and calls it from any thread.
///
/// # Safety
/// [`allocate`](Self::allocate) must return `size` bytes at a multiple of `alignment` that overlap no other allocation of
/// the process until they are passed to [`free`](Self::free). The pool never dereferences the address, so the memory need
/// not be accessible to the host.
///
/// No function may panic: where the driver is out of memory, all pools of the process return theirs, also while an operation is
/// in flight whose operands the panic would drop.
pub unsafe trait Provider: Send + Sync + 'static {
    /// Allocates `size` bytes, never 0, at an `alignment` of 0 (the provider's choice, of at least
    /// [`SMALLEST_ALIGNMENT`](super::SMALLEST_ALIGNMENT)) or a power of two.
    ///
    /// # Errors
    /// Any error. The pool then returns its free chunks to the provider, and retries; if the error is an
    /// [out-of-memory one](crate::Error::is_out_of_memory), all pools of the process do. A provider that takes its memory from
    /// another pool must therefore hold no lock meanwhile that its [`free`](Self::free) takes.
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>>;

    /// Frees memory that [`allocate`](Self::allocate) returned. Failures are ignored, as a drop cannot report them.
    ///
    /// # Safety
    /// `address` must come from this provider with `size`, be freed once, and not be in use any more.
    unsafe fn free(&self, address: NonNull<c_void>, size: usize);

    /// Whether the host and a device may access two blocks of one allocation concurrently. If not, each block of the pool
    /// is an allocation of its own, which is cached when it is freed.
    fn shares_allocations(&self) -> bool {
        true
    }

    /// The place of its memory, for the [history](crate::history) and for [`slabs`](super::slabs).
    fn place(&self) -> Place {
        Place::default()
    }
}

/// One allocation of the provider.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) base: NonNull<c_void>,
    pub(super) size: usize,
}

// SAFETY: a chunk is an address and a length; the address is never dereferenced.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}
