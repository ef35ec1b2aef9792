//! The addresses of this process's mappings. The bytes of a mapping may have other addresses in the process, too: in the
//! mapping of another context, and in the allocation itself if the handle is the process's own.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use zeusm_process::{ForkLock, held_at_fork};

/// The ends, by first address. Two mappings do not overlap.
type Table = BTreeMap<usize, usize>;

/// A fork's child inherits the table with the mappings.
static REGISTERED: ForkLock<Table> = ForkLock::new(Table::new());
held_at_fork!(REGISTERED);

/// The number of entries, which is 0 in most programs and read without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The addresses of a mapping, which are registered until the drop.
#[derive(Debug)]
pub(super) struct MappedRange(usize);

impl MappedRange {
    pub(super) fn new(range: Range<usize>) -> Self {
        REGISTERED.write().insert(range.start, range.end);
        COUNT.fetch_add(1, Ordering::Release);
        Self(range.start)
    }
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Release);
        REGISTERED.write().remove(&self.0);
    }
}

/// Whether bytes of `range` are in a mapping of this process, so that they may have other addresses as well.
#[must_use]
#[inline]
pub fn is_mapped(range: &Range<usize>) -> bool {
    COUNT.load(Ordering::Acquire) > 0 && overlaps_a_mapping(range)
}

#[cold]
fn overlaps_a_mapping(range: &Range<usize>) -> bool {
    let table = REGISTERED.read();
    let before = table.range(..range.end).next_back();
    before.is_some_and(|(_, &end)| range.start < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_mapped_until_the_drop() {
        let base = 0x7300_0000_0000;
        let range = |from: usize, to: usize| base + from..base + to;
        assert!(!is_mapped(&range(0, 10)));
        let mapped = MappedRange::new(range(4096, 8192));
        let higher = MappedRange::new(range(16384, 20480));
        for (from, to, expected) in [
            (0, 4096, false),
            (0, 4097, true),
            (4096, 4096, false),
            (5000, 5001, true),
            (8191, 16384, true),
            (8192, 16384, false),
            (0, 30000, true),
        ] {
            assert_eq!(is_mapped(&range(from, to)), expected, "{from}..{to}");
        }
        drop(mapped);
        assert!(!is_mapped(&range(0, 16384)));
        drop(higher);
        assert!(!is_mapped(&range(0, 30000)));
    }
}
