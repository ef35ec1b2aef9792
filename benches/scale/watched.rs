//! A provider that remembers how much of it was out at a time.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zeusm::Result;
use zeusm::pool::Provider;
use zeusm::usm::LevelZero;

pub struct Watched {
    provider: LevelZero,
    bytes: AtomicUsize,
    most: Arc<AtomicUsize>,
}

impl Watched {
    pub fn new(provider: LevelZero) -> Self {
        Self {
            provider,
            bytes: AtomicUsize::new(0),
            most: Arc::default(),
        }
    }

    /// Tells the most bytes there have been, when the pool has this.
    pub fn most(&self) -> impl Fn() -> usize + use<> {
        let most = Arc::clone(&self.most);
        move || most.load(Ordering::Relaxed)
    }
}

// SAFETY: as of Level Zero.
unsafe impl Provider for Watched {
    fn allocate(&self, size: usize, alignment: usize) -> Result<NonNull<c_void>> {
        let memory = self.provider.allocate(size, alignment)?;
        let bytes = self.bytes.fetch_add(size, Ordering::Relaxed) + size;
        self.most.fetch_max(bytes, Ordering::Relaxed);
        Ok(memory)
    }

    unsafe fn free(&self, address: NonNull<c_void>, size: usize) {
        self.bytes.fetch_sub(size, Ordering::Relaxed);
        // SAFETY: the caller's word.
        unsafe { self.provider.free(address, size) };
    }
}
