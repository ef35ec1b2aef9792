//! What several threads do at the same time, for a thread that waits for what began before.

use std::collections::BTreeSet;

/// What is in progress, numbered in the order in which it began.
#[derive(Debug, Default)]
pub(crate) struct Ongoing {
    next: u64,
    active: BTreeSet<u64>,
}

impl Ongoing {
    pub(crate) fn begin(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.active.insert(number);
        number
    }

    pub(crate) fn end(&mut self, number: u64) {
        self.active.remove(&number);
    }

    /// The number of what begins next.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether anything with a lower number is in progress.
    pub(crate) fn has_before(&self, number: u64) -> bool {
        self.active.first().is_some_and(|&first| first < number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_for_what_began_before() {
        let mut ongoing = Ongoing::default();
        let (first, second) = (ongoing.begin(), ongoing.begin());
        let end = ongoing.next();
        let later = ongoing.begin();
        ongoing.end(first);
        assert!(ongoing.has_before(end));
        ongoing.end(second);
        assert!(!ongoing.has_before(end));
        ongoing.end(later);
        assert!(!ongoing.has_before(ongoing.next()));
    }
}
