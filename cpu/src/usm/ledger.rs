//! How much memory is handed out, and whether there is more: memory is promised only if the machine has it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::machine::memory;

/// From this size on, what is free at the moment is looked up too.
const LOOK_FROM: u64 = 16 << 20;

static HANDED_OUT: AtomicU64 = AtomicU64::new(0);

/// Enters `size` bytes; `false`, with nothing entered, when the machine does not have them.
pub fn enter(size: usize) -> bool {
    let size = size as u64;
    if size >= LOOK_FROM && size > memory::available() {
        return false;
    }
    HANDED_OUT
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |before| {
            before
                .checked_add(size)
                .filter(|after| *after <= memory::total())
        })
        .is_ok()
}

/// Strikes out `size` bytes that had been entered.
pub fn leave(size: usize) {
    HANDED_OUT.fetch_sub(size as u64, Ordering::Relaxed);
}
