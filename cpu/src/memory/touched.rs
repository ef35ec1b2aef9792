//! How much of the allocated memory has been touched, so that the machine has it no more.

#[cfg(target_os = "linux")]
#[path = "touched/linux.rs"]
mod platform;
#[cfg(windows)]
#[path = "touched/windows.rs"]
mod platform;

use std::ops::Range;

#[cfg(target_os = "linux")]
pub use platform::count_file;
use platform::{in_counted_files, resident};

use super::map;
use crate::system::PAGE;

/// The bytes of the pages of all allocations that are in memory, pages that have only been read among them; takes a millisecond or
/// less per GiB.
pub fn touched() -> u64 {
    pages(map::own()).into_iter().map(resident).sum::<usize>() as u64 + in_counted_files()
}

/// The pages of ranges in the order of their addresses, in ranges that do not touch.
fn pages(all: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for bytes in all {
        let start = bytes.start / PAGE * PAGE;
        let end = bytes.end.next_multiple_of(PAGE);
        match ranges.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => ranges.push(start..end),
        }
    }
    ranges
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
