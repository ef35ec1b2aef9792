//! Bytes that were granted, which their owner gives back when it drops them.

use std::sync::atomic::{AtomicU64, Ordering};

use super::share::Share;

/// The granted bytes of the process.
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

/// The granted bytes of all owners.
pub fn allocated() -> u64 {
    ALLOCATED.load(Ordering::Relaxed)
}

/// Adds to [`allocated`], up to `ceiling`.
pub fn add(size: u64, ceiling: u64) -> bool {
    let more = |before: u64| before.checked_add(size).filter(|after| *after <= ceiling);
    ALLOCATED
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
        .is_ok()
}

/// Granted bytes of the machine, and of a device's share of it.
#[derive(Debug)]
pub struct Reserved {
    size: usize,
    share: Option<&'static Share>,
}

impl Reserved {
    /// `size` bytes, if the share has them and `grant`, which then has added them, grants them.
    pub fn new(
        size: usize,
        share: Option<&'static Share>,
        grant: impl FnOnce(u64) -> bool,
    ) -> Option<Self> {
        if !share.is_none_or(|share| share.reserve(size)) {
            return None;
        }
        if grant(size as u64) {
            return Some(Self { size, share });
        }
        if let Some(share) = share {
            share.release(size);
        }
        None
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        ALLOCATED.fetch_sub(self.size as u64, Ordering::Relaxed);
        if let Some(share) = self.share {
            share.release(self.size);
        }
    }
}
