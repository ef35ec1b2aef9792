//! A per-thread limit of the bytes to copy or fill, with which an injected stop truncates an operation.

use std::cell::Cell;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Runs an operation that is truncated after `bytes`.
pub(crate) fn at_most<T>(bytes: u64, run: impl FnOnce() -> T) -> T {
    LEFT.set(bytes);
    let answer = run();
    LEFT.set(u64::MAX);
    answer
}

/// Consumes up to `bytes` of the remaining limit. Returns the number consumed.
pub(super) fn take(bytes: u64) -> u64 {
    let taken = LEFT.get().min(bytes);
    if LEFT.get() != u64::MAX {
        LEFT.set(LEFT.get() - taken);
    }
    taken
}
