//! How much memory is handed out, and whether there is more: memory is promised only if the machine has it.
//!
//! What may be handed out in all is the last reading of what is available and what was handed out at that time; so what
//! is handed out since counts against it, and what is freed since for it, at once and at every size. The reading is taken
//! anew when a part of it has been handed out, for the rest of the machine goes on; for large memory, when it is old;
//! and before anything is refused.
//!
//! Memory that has been handed out and not touched yet is still available by every reading. So there is a second bound:
//! the most that has ever been available, which is what there was before this process took any.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::system::clock;
use crate::system::memory;

/// From this size on, the reading must not be older than [`FRESH`].
const LARGE: u64 = 16 << 20;
/// In nanoseconds: a reading takes longer than a large allocation.
const FRESH: u64 = 20_000_000;
/// A new reading is due when a part of the last one has been handed out, or this much if that is more.
const PART: u64 = 8;
const LEAST_PART: u64 = 4 << 20;
/// This part of what is available is left alone: the process needs some for other things, page tables among them.
const RESERVE: u64 = 32;

/// Bytes handed out.
static HANDED_OUT: AtomicU64 = AtomicU64::new(0);
/// What [`HANDED_OUT`] may grow to without a new reading.
static CHECKPOINT: AtomicU64 = AtomicU64::new(0);
/// The most that has ever been available.
static MOST: AtomicU64 = AtomicU64::new(0);
/// When the last reading was taken, in nanoseconds of the process's clock.
static READ_AT: AtomicU64 = AtomicU64::new(0);

/// Enters `size` bytes; `false`, with nothing entered, when the machine does not have them.
pub fn enter(size: usize) -> bool {
    let size = size as u64;
    let stale =
        size >= LARGE && clock::now().saturating_sub(READ_AT.load(Ordering::Relaxed)) > FRESH;
    if !stale && add(size, CHECKPOINT.load(Ordering::Relaxed)) {
        return true;
    }
    let ceiling = read();
    add(size, ceiling)
}

/// Strikes out `size` bytes that had been entered.
pub fn leave(size: usize) {
    HANDED_OUT.fetch_sub(size as u64, Ordering::Relaxed);
}

/// Whether the machine has `size` bytes for something that is soon over.
pub fn has_room_for(size: u64) -> bool {
    size < LEAST_PART || size <= usable(memory::available())
}

/// Adds to what is handed out, up to `ceiling`.
fn add(size: u64, ceiling: u64) -> bool {
    let more = |before: u64| before.checked_add(size).filter(|after| *after <= ceiling);
    HANDED_OUT
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
        .is_ok()
}

/// Takes a reading: what [`HANDED_OUT`] may grow to by it.
fn read() -> u64 {
    let before = HANDED_OUT.load(Ordering::Relaxed);
    let available = usable(memory::available());
    // What another thread frees or takes during the reading may be in it or not: the smaller sum is right in both cases.
    let base = before.min(HANDED_OUT.load(Ordering::Relaxed));
    let most = MOST
        .fetch_max(available, Ordering::Relaxed)
        .max(available)
        .min(memory::total());
    let ceiling = base.saturating_add(available).min(most);
    let part = (available / PART).max(LEAST_PART);
    CHECKPOINT.store(ceiling.min(base.saturating_add(part)), Ordering::Relaxed);
    READ_AT.store(clock::now(), Ordering::Relaxed);
    ceiling
}

fn usable(available: u64) -> u64 {
    available - available / RESERVE
}
