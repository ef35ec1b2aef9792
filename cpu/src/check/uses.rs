//! What a command accesses, as far as its arguments and ranges tell.

use std::ops::Range;

use smallvec::SmallVec;

/// The memory of a command.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// What the command is, in words; empty for one that accesses no memory.
    pub what: String,
    /// Bytes that it reads.
    pub reads: SmallVec<[Range<usize>; 1]>,
    /// Bytes that it writes.
    pub writes: SmallVec<[Range<usize>; 1]>,
    /// The pointers that a kernel is given; how much it reads or writes there is unknown.
    pub pointers: SmallVec<[usize; 4]>,
    /// Another context, whose memory it may read.
    pub context: Option<u64>,
}

impl Uses {
    /// Whether a kernel is what accesses the memory.
    pub fn is_kernel(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && !self.pointers.is_empty()
    }

    /// The first byte that this and another command access, one of them writing. Two kernels with the same pointer may
    /// both only read.
    pub fn conflict(&self, other: &Self) -> Option<usize> {
        self.written_by(other).or_else(|| other.written_by(self))
    }

    /// The first byte that this one writes and the other one accesses.
    fn written_by(&self, other: &Self) -> Option<usize> {
        self.writes.iter().find_map(|written| {
            let mut ranges = other.writes.iter().chain(&other.reads);
            let overlap =
                ranges.find(|range| range.start < written.end && written.start < range.end);
            let pointer = || other.pointers.iter().find(|it| written.contains(it));
            overlap
                .map(|range| range.start.max(written.start))
                .or_else(|| pointer().copied())
        })
    }

    /// Whether it accesses a byte of `range`.
    pub fn touches(&self, range: &Range<usize>) -> bool {
        let overlaps = |it: &Range<usize>| it.start < range.end && range.start < it.end;
        self.reads.iter().chain(&self.writes).any(overlaps)
            || self.pointers.iter().any(|it| range.contains(it))
    }

    /// Whether it may write the byte at `address` of the allocation `range`.
    pub fn may_write(&self, address: usize, range: &Range<usize>) -> bool {
        self.writes.iter().any(|written| written.contains(&address))
            || self.pointers.iter().any(|it| range.contains(it))
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    #[test]
    fn a_conflict_needs_a_write() {
        let copy = |from: Range<usize>, to: Range<usize>| Uses {
            reads: smallvec![from],
            writes: smallvec![to],
            ..Uses::default()
        };
        let kernel = |pointer| Uses {
            pointers: smallvec![pointer],
            ..Uses::default()
        };
        let (a, b, c) = (0..10, 20..30, 40..50);
        assert_eq!(
            copy(a.clone(), b.clone()).conflict(&copy(a.clone(), c.clone())),
            None
        );
        assert_eq!(
            copy(a.clone(), b.clone()).conflict(&copy(25..28, c.clone())),
            Some(25)
        );
        assert_eq!(
            copy(25..28, c).conflict(&copy(a.clone(), b.clone())),
            Some(25)
        );
        assert_eq!(kernel(20).conflict(&kernel(20)), None);
        assert_eq!(kernel(20).conflict(&copy(a.clone(), b.clone())), Some(20));
        assert_eq!(kernel(5).conflict(&copy(a, b)), None);
    }
}
