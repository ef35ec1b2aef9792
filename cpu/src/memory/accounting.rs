//! Memory accounting: an allocation is granted only if the machine has the memory.
//!
//! The limit is the memory that was available at the last reading plus the memory that was allocated at that time, so
//! later allocations and frees of every size count at once. A new reading is taken when a fraction of the last one has
//! been allocated (other processes allocate, too), when it is old and the allocation large, and before any allocation
//! is refused.
//!
//! Allocated memory that has not been touched yet still counts as available in a reading. So there is a second limit: the most
//! that was ever available, which is the state before this process allocated any. It grows when other processes free memory:
//! before an allocation is refused because of it, the touched pages are counted, which are available no more. Pages that have
//! only been read count, too, although they are available still: the system does not tell them apart in a short time.

use std::sync::atomic::{AtomicU64, Ordering};

use super::room::{usable, without_reserve};
use super::share::{Reserved, Share, add, allocated};
use super::touched::touched;
use crate::system::{clock, memory};

/// From this size on, the reading must not be older than [`FRESH`].
const LARGE: u64 = 16 << 20;
/// The age limit in nanoseconds; a reading takes longer than a large allocation.
const FRESH: u64 = 20_000_000;
/// A new reading is due when this fraction of the last one has been allocated, or [`MIN_STEP`] if that is more.
///
/// Beside each small allocation the program has objects of its own, which only a reading counts: until the next one they have to
/// fit into what was left at the last.
const PART: u64 = 32;
const MIN_STEP: u64 = 256 << 10;

/// The limit for what is allocated without a new reading.
static CHECKPOINT: AtomicU64 = AtomicU64::new(0);
/// The most that has ever been available, this process's own memory included.
static MOST: AtomicU64 = AtomicU64::new(0);
/// When the last reading was taken, in nanoseconds of the process's clock.
static READ_AT: AtomicU64 = AtomicU64::new(0);

/// Accounts for `size` bytes, also in a device's share; `None`, with nothing accounted for, when the share or the machine does
/// not have them.
pub fn reserve(size: usize, share: Option<&'static Share>) -> Option<Reserved> {
    Reserved::new(size, share, reserve_of_machine)
}

fn reserve_of_machine(size: u64) -> bool {
    let stale =
        size >= LARGE && clock::now().saturating_sub(READ_AT.load(Ordering::Relaxed)) > FRESH;
    if !stale && add(size, CHECKPOINT.load(Ordering::Relaxed)) {
        return true;
    }
    let (ceiling, available) = read();
    if add(size, ceiling) {
        return true;
    }
    size <= available && add(size, raised_ceiling(available))
}

/// How many bytes would be granted now.
pub fn free() -> u64 {
    let below = |ceiling: u64| ceiling.saturating_sub(allocated());
    let (ceiling, available) = read();
    // A small difference is not worth the time.
    if below(ceiling) >= without_reserve(available) {
        return below(ceiling);
    }
    below(raised_ceiling(available))
}

/// The limit for [`allocated`] after [`MOST`] was compared with what is `available` and what is touched.
fn raised_ceiling(available: u64) -> u64 {
    let touched = touched();
    // Pages that were touched or freed during the count are not available in one of the two readings.
    let most = available.min(usable()).saturating_add(touched);
    MOST.fetch_max(most, Ordering::Relaxed);
    read().0
}

/// Takes a reading, and returns the limit for [`allocated`] and what is available.
fn read() -> (u64, u64) {
    let before = allocated();
    let available = usable();
    // A concurrent allocation or free may or may not be part of the reading; the smaller sum is correct in both cases.
    let base = before.min(allocated());
    let most = MOST
        .fetch_max(available, Ordering::Relaxed)
        .max(available)
        .min(memory::total());
    let ceiling = base.saturating_add(available).min(most);
    let part = (available / PART).max(MIN_STEP);
    CHECKPOINT.store(ceiling.min(base.saturating_add(part)), Ordering::Relaxed);
    READ_AT.store(clock::now(), Ordering::Relaxed);
    (ceiling, available)
}
