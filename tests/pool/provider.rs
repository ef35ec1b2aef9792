//! Providers for tests: `Tracked` tracks the allocations of another provider and fails on demand; `Fresh` provides
//! addresses without memory.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use zeusm::pool::Provider;
use zeusm::{Error, Result, sys};

use crate::random::Random;

/// A test's view of its provider while a pool owns that.
#[derive(Clone, Default)]
pub struct Tracker(Arc<Inner>);

#[derive(Default)]
struct Inner {
    live: Mutex<BTreeMap<usize, usize>>,
    bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
    allocations: AtomicUsize,
    frees: AtomicUsize,
    refusals: AtomicUsize,
    /// The most bytes that it provides; 0 for no limit.
    capacity: AtomicUsize,
    /// It refuses one of so many calls, at random; 0 for none.
    refuse_one_in: AtomicUsize,
    /// Whether a refusal means that it is out of memory, for which all pools of the process return their free memory.
    is_out_of_memory: AtomicBool,
}

/// A provider whose allocations are tracked.
pub struct Tracked<P> {
    provider: P,
    tracker: Tracker,
}

/// Tracked addresses without memory.
pub type Addresses = Tracked<Fresh>;

/// Provides addresses without memory, each of them once in the process.
pub struct Fresh;

/// Tracked addresses whose `free` takes long, and tells when it begins.
pub struct SlowFree(Addresses, Sender<()>);

impl SlowFree {
    /// The provider, and what receives the beginnings.
    pub fn new(tracker: &Tracker) -> (Self, Receiver<()>) {
        let (began, begins) = channel();
        (Self(tracker.provider(), began), begins)
    }
}

// SAFETY: it is that of the other provider.
unsafe impl Provider for SlowFree {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        self.0.allocate(size, alignment)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        // The pool's drop frees, too, when no one listens.
        let _ = self.1.send(());
        thread::sleep(Duration::from_millis(50));
        // SAFETY: the caller guarantees what the function requires.
        unsafe { self.0.free(address, size) };
    }
}

impl Tracker {
    pub fn provider(&self) -> Addresses {
        self.wrap(Fresh)
    }

    pub fn wrap<P>(&self, provider: P) -> Tracked<P> {
        Tracked {
            provider,
            tracker: self.clone(),
        }
    }

    pub fn with_capacity(bytes: usize) -> Self {
        let tracker = Self::default();
        tracker.set_capacity(bytes);
        tracker
    }

    pub fn set_capacity(&self, bytes: usize) {
        self.0.capacity.store(bytes, Ordering::SeqCst);
    }

    pub fn refuse_one_in(&self, calls: usize) {
        self.0.refuse_one_in.store(calls, Ordering::SeqCst);
    }

    /// Refuses from now on as one that is out of memory.
    #[allow(dead_code, reason = "tests/out_of_memory.rs uses it")]
    pub fn refuse_as_out_of_memory(&self) {
        self.0.is_out_of_memory.store(true, Ordering::SeqCst);
    }

    /// The result of a refusal. Unless a test asks for the other, it does not affect the pools of other tests.
    fn refusal(&self) -> sys::ze_result_t {
        match self.0.is_out_of_memory.load(Ordering::SeqCst) {
            true => sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
            false => sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE,
        }
    }

    /// The allocated bytes.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::SeqCst)
    }

    /// The peak of the allocated bytes.
    pub fn peak_bytes(&self) -> usize {
        self.0.peak_bytes.load(Ordering::SeqCst)
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

    /// Whether the `size` bytes at `address` are within one live allocation.
    pub fn covers(&self, address: usize, size: usize) -> bool {
        self.0
            .live
            .lock()
            .range(..=address)
            .next_back()
            .is_some_and(|(base, length)| address + size <= base + length)
    }

    /// Whether a live allocation begins at `address`.
    pub fn begins_at(&self, address: usize) -> bool {
        self.0.live.lock().contains_key(&address)
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

// SAFETY: the addresses are unique and aligned, and never dereferenced.
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

// SAFETY: the contract is that of the other provider.
unsafe impl<P: Provider> Provider for Tracked<P> {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        assert_ne!(size, 0);
        assert!(alignment == 0 || alignment.is_power_of_two());
        let inner = &self.tracker.0;
        if self.tracker.refuses(size) {
            inner.refusals.fetch_add(1, Ordering::SeqCst);
            return Err(Error::Call {
                function: "Tracked::allocate",
                result: self.tracker.refusal(),
            });
        }
        let memory = self.provider.allocate(size, alignment)?;
        let before = inner.live.lock().insert(memory.addr().get(), size);
        assert_eq!(before, None, "allocated twice");
        inner.allocations.fetch_add(1, Ordering::SeqCst);
        let bytes = inner.bytes.fetch_add(size, Ordering::SeqCst) + size;
        inner.peak_bytes.fetch_max(bytes, Ordering::SeqCst);
        Ok(memory)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        let inner = &self.tracker.0;
        let known = inner.live.lock().remove(&address.addr().get());
        assert_eq!(
            known,
            Some(size),
            "freed with another size, or not allocated"
        );
        inner.frees.fetch_add(1, Ordering::SeqCst);
        inner.bytes.fetch_sub(size, Ordering::SeqCst);
        // SAFETY: the contract is the same.
        unsafe { self.provider.free(address, size) };
    }
}
