//! A provider that tracks the peak of its allocated bytes.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zeusm::Result;
use zeusm::pool::Provider;
use zeusm::usm::LevelZeroProvider;

pub struct Tracked {
    provider: LevelZeroProvider,
    bytes: AtomicUsize,
    peak_bytes: Arc<AtomicUsize>,
}

impl Tracked {
    pub fn new(provider: LevelZeroProvider) -> Self {
        Self {
            provider,
            bytes: AtomicUsize::new(0),
            peak_bytes: Arc::default(),
        }
    }

    /// Reads the peak while a pool owns this.
    pub fn peak_bytes(&self) -> impl Fn() -> usize + use<> {
        let peak_bytes = Arc::clone(&self.peak_bytes);
        move || peak_bytes.load(Ordering::Relaxed)
    }
}

// SAFETY: the contract is that of the other provider.
unsafe impl Provider for Tracked {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        let memory = self.provider.allocate(size, alignment)?;
        let bytes = self.bytes.fetch_add(size, Ordering::Relaxed) + size;
        self.peak_bytes.fetch_max(bytes, Ordering::Relaxed);
        Ok(memory)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        self.bytes.fetch_sub(size, Ordering::Relaxed);
        // SAFETY: the contract is the same.
        unsafe { self.provider.free(address, size) };
    }
}
