//! Transfers: threads that move free memory between the parts of a pool, or from the provider to one. Until a transfer ends,
//! another thread does not find all of that memory.

use std::collections::BTreeSet;

/// The transfers in progress, numbered in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    next: u64,
    active: BTreeSet<u64>,
}

impl Transfers {
    pub(super) fn begin(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.active.insert(number);
        number
    }

    pub(super) fn end(&mut self, number: u64) {
        self.active.remove(&number);
    }

    /// The number of the transfer that begins next.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether a transfer before that of this number is in progress.
    pub(super) fn has_before(&self, number: u64) -> bool {
        self.active.first().is_some_and(|&first| first < number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_for_the_transfers_that_began_before() {
        let mut transfers = Transfers::default();
        let (first, second) = (transfers.begin(), transfers.begin());
        let end = transfers.next();
        let later = transfers.begin();
        transfers.end(first);
        assert!(transfers.has_before(end));
        transfers.end(second);
        assert!(!transfers.has_before(end));
        transfers.end(later);
        assert!(!transfers.has_before(transfers.next()));
    }
}
