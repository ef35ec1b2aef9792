//! Windows grants memory when it is allocated: all of it is taken, touched or not.

use std::ops::Range;

/// The bytes of a range.
pub fn resident(range: Range<usize>) -> usize {
    range.len()
}

/// Memory is in no files.
pub fn in_counted_files() -> u64 {
    0
}
