//! Granted bytes, and the share of the machine's memory that a device has, where there are several devices.

use std::sync::atomic::{AtomicU64, Ordering};

/// A limit on the sum of allocations, which live as long as the process.
#[derive(Debug)]
pub struct Share {
    limit: u64,
    allocated: AtomicU64,
    /// The share that this one is a part of.
    whole: Option<&'static Self>,
}

impl Share {
    /// A share of `limit` bytes, which may be part of another one.
    #[must_use]
    pub fn new(limit: u64, whole: Option<&'static Self>) -> &'static Self {
        Box::leak(Box::new(Self {
            limit,
            allocated: AtomicU64::new(0),
            whole,
        }))
    }

    /// Accounts for `size` bytes; `false`, with nothing accounted for, when the share or its whole does not have them.
    pub fn reserve(&self, size: usize) -> bool {
        if !add_to(&self.allocated, size as u64, self.limit) {
            return false;
        }
        let fits = self.whole.is_none_or(|whole| whole.reserve(size));
        if !fits {
            self.allocated.fetch_sub(size as u64, Ordering::Relaxed);
        }
        fits
    }

    /// How many bytes it and its whole still have.
    pub fn free(&self) -> u64 {
        let allocated = self.allocated.load(Ordering::Relaxed);
        let own = self.limit.saturating_sub(allocated);
        self.whole.map_or(own, |whole| whole.free().min(own))
    }

    /// Undoes [`reserve`](Self::reserve) for `size` bytes.
    pub fn release(&self, size: usize) {
        self.allocated.fetch_sub(size as u64, Ordering::Relaxed);
        if let Some(whole) = self.whole {
            whole.release(size);
        }
    }
}

/// The granted bytes of the process.
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

/// The granted bytes of all owners.
pub fn allocated() -> u64 {
    ALLOCATED.load(Ordering::Relaxed)
}

/// Adds to [`allocated`], up to `ceiling`.
pub fn add(size: u64, ceiling: u64) -> bool {
    add_to(&ALLOCATED, size, ceiling)
}

fn add_to(count: &AtomicU64, size: u64, ceiling: u64) -> bool {
    let more = |before: u64| before.checked_add(size).filter(|after| *after <= ceiling);
    let added = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    added.is_ok()
}

/// Bytes that were granted, of the machine and of a device's share of it, which their owner gives back when it drops them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_limited_by_its_whole_too() {
        let whole = Share::new(100, None);
        let parts = [Share::new(60, Some(whole)), Share::new(60, Some(whole))];
        assert!(!parts[0].reserve(61));
        assert!(parts[0].reserve(60) && !parts[0].reserve(1));
        assert_eq!((parts[0].free(), parts[1].free()), (0, 40));
        assert!(!parts[1].reserve(41) && parts[1].reserve(40));
        assert_eq!(parts[1].free(), 0);
        assert!(!whole.reserve(1));
        parts[0].release(60);
        assert!(!parts[1].reserve(21) && parts[1].reserve(20));
        assert!(whole.reserve(40) && !whole.reserve(1) && !whole.reserve(usize::MAX));
    }
}
