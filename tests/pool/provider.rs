//! Providers to test with: a book of what is out and failures on demand, over any other provider or over none, which
//! gives no memory at all, only addresses.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use zeusm::pool::Provider;
use zeusm::{Error, Result, sys};

use crate::random::Random;

/// What a test still sees of its provider when a pool has it.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Inner>);

#[derive(Default)]
struct Inner {
    out: Mutex<BTreeMap<usize, usize>>,
    bytes: AtomicUsize,
    most: AtomicUsize,
    allocations: AtomicUsize,
    frees: AtomicUsize,
    refusals: AtomicUsize,
    /// Bytes above which it refuses; 0 for none.
    capacity: AtomicUsize,
    /// Of how many calls it refuses one, at random; 0 for none.
    refuse_one_in: AtomicUsize,
}

/// A provider with a book.
pub struct Watched<P> {
    provider: P,
    ledger: Ledger,
}

/// A book of addresses.
pub type Addresses = Watched<Fresh>;

/// Addresses that are never used twice in the process.
pub struct Fresh;

impl Ledger {
    pub fn provider(&self) -> Addresses {
        self.over(Fresh)
    }

    pub fn over<P>(&self, provider: P) -> Watched<P> {
        Watched {
            provider,
            ledger: self.clone(),
        }
    }

    pub fn with_capacity(bytes: usize) -> Self {
        let ledger = Self::default();
        ledger.set_capacity(bytes);
        ledger
    }

    pub fn set_capacity(&self, bytes: usize) {
        self.0.capacity.store(bytes, Ordering::SeqCst);
    }

    pub fn refuse_one_in(&self, calls: usize) {
        self.0.refuse_one_in.store(calls, Ordering::SeqCst);
    }

    /// Bytes that are out.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::SeqCst)
    }

    /// The most bytes that were out.
    pub fn most(&self) -> usize {
        self.0.most.load(Ordering::SeqCst)
    }

    pub fn allocations(&self) -> usize {
        self.0.allocations.load(Ordering::SeqCst)
    }

    pub fn frees(&self) -> usize {
        self.0.frees.load(Ordering::SeqCst)
    }

    pub fn refusals(&self) -> usize {
        self.0.refusals.load(Ordering::SeqCst)
    }

    /// Whether all of `size` bytes at `address` is out, in one piece.
    pub fn covers(&self, address: usize, size: usize) -> bool {
        self.0
            .out
            .lock()
            .range(..=address)
            .next_back()
            .is_some_and(|(base, length)| address + size <= base + length)
    }

    /// Whether an allocation that is out begins at `address`.
    pub fn begins_at(&self, address: usize) -> bool {
        self.0.out.lock().contains_key(&address)
    }

    fn refuses(&self, size: usize) -> bool {
        let inner = &self.0;
        let capacity = inner.capacity.load(Ordering::SeqCst);
        let one_in = inner.refuse_one_in.load(Ordering::SeqCst);
        let call = inner.allocations.load(Ordering::SeqCst) + self.refusals();
        (capacity != 0 && self.bytes().saturating_add(size) > capacity)
            || (one_in != 0 && Random(call as u64).below(one_in) == 0)
            || size > 1 << 50
    }
}

// SAFETY: the addresses are fresh and aligned, and nobody follows them.
unsafe impl Provider for Fresh {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        static NEXT: AtomicUsize = AtomicUsize::new(1 << 44);
        let alignment = alignment.max(64);
        let start = NEXT.fetch_add(size + alignment, Ordering::SeqCst);
        let address = start.next_multiple_of(alignment);
        Ok(NonNull::new(std::ptr::without_provenance_mut(address)).unwrap())
    }

    unsafe fn free(&self, _: NonNull<c_void>, _: usize) {}
}

// SAFETY: as of the other provider.
unsafe impl<P: Provider> Provider for Watched<P> {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        assert_ne!(size, 0);
        assert!(alignment == 0 || alignment.is_power_of_two());
        let inner = &self.ledger.0;
        if self.ledger.refuses(size) {
            inner.refusals.fetch_add(1, Ordering::SeqCst);
            return Err(Error::Call {
                function: "Watched::allocate",
                result: sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
            });
        }
        let memory = self.provider.allocate(size, alignment)?;
        let before = inner.out.lock().insert(memory.addr().get(), size);
        assert_eq!(before, None, "given twice");
        inner.allocations.fetch_add(1, Ordering::SeqCst);
        let bytes = inner.bytes.fetch_add(size, Ordering::SeqCst) + size;
        inner.most.fetch_max(bytes, Ordering::SeqCst);
        Ok(memory)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        let inner = &self.ledger.0;
        let known = inner.out.lock().remove(&address.addr().get());
        assert_eq!(known, Some(size), "freed what was not allocated so");
        inner.frees.fetch_add(1, Ordering::SeqCst);
        inner.bytes.fetch_sub(size, Ordering::SeqCst);
        // SAFETY: the caller's word.
        unsafe { self.provider.free(address, size) };
    }
}
