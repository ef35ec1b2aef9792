//! How many bytes this thread may still copy or fill: an operation that is to stop in its middle has a few.

use std::cell::Cell;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Runs an operation of which the first so many bytes are done; the rest is left out.
pub(crate) fn at_most<T>(bytes: u64, run: impl FnOnce() -> T) -> T {
    LEFT.set(bytes);
    let answer = run();
    LEFT.set(u64::MAX);
    answer
}

/// Takes up to `bytes` from what is left.
pub(super) fn take(bytes: u64) -> u64 {
    let taken = LEFT.get().min(bytes);
    if LEFT.get() != u64::MAX {
        LEFT.set(LEFT.get() - taken);
    }
    taken
}
