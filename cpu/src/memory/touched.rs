//! How much of the allocated memory has been touched, so that the machine has it no more.

use std::ops::Range;

use super::{PAGE, map};

/// How many pages one call of the system tells.
const PAGES: usize = 1 << 16;

/// The bytes of the pages of all allocations that are in memory. Takes a while, as it looks at each page.
pub fn touched() -> u64 {
    let pages: usize = map::pages().into_iter().map(resident).sum();
    (pages * PAGE) as u64
}

/// How many pages of a range are in memory; none of those that are unmapped meanwhile.
fn resident(range: Range<usize>) -> usize {
    let mut states = vec![0_u8; range.len().div_ceil(PAGE).min(PAGES)];
    let parts = range.clone().step_by(PAGES * PAGE);
    let count = |start: usize| {
        let length = (range.end - start).min(PAGES * PAGE);
        // SAFETY: the system writes a byte for each page, for which there is room, and reads no memory of the range.
        let result = unsafe { libc::mincore(start as *mut _, length, states.as_mut_ptr()) };
        let states = &states[..length.div_ceil(PAGE)];
        let in_memory = states.iter().filter(|state| **state & 1 != 0);
        if result == 0 { in_memory.count() } else { 0 }
    };
    parts.map(count).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::Mapping;
    use super::*;

    #[test]
    fn only_pages_that_were_written_are_in_memory() {
        // Less than a huge page, so that each page is one.
        let memory = Mapping::anonymous(100 * PAGE, PAGE).unwrap();
        let range = memory.address()..memory.address() + memory.length();
        assert_eq!(resident(range.clone()), 0);
        for page in [0, 7, 99] {
            // SAFETY: the page is in the mapping.
            unsafe { ((range.start + page * PAGE) as *mut u8).write(1) };
        }
        assert_eq!(resident(range.clone()), 3);
        drop(memory);
        assert_eq!(resident(range), 0);
    }
}
