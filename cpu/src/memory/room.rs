//! What of the machine's available memory may be used.

use zeusm_process::memory::Memory;

use crate::system::memory;

/// This fraction of the available memory is kept in reserve, for page tables among other things.
const RESERVE: u64 = 32;
/// The reserve is at least this, or this fraction of all memory if that is less: where control groups end a process that has
/// no memory left, the program needs some for its own objects, to handle the error and to fork.
const LEAST: u64 = 16 << 20;
const LEAST_PART: u64 = 16;

/// Some bytes without the reserve.
pub fn without_reserve(bytes: u64) -> u64 {
    let least = LEAST.min(memory::total() / LEAST_PART);
    bytes.saturating_sub(least.max(bytes / RESERVE))
}

/// The bytes that may be used now.
pub fn usable() -> u64 {
    without_reserve(Memory::now().available)
}
