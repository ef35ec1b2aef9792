//! What is told of a command: its place among the others, and what it accesses, as far as its arguments and ranges tell.

use std::ops::Range;

use smallvec::SmallVec;

/// A signal that a command waits for.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The signal.
    pub signal: usize,
    /// Whether it is neither set nor promised: no submitted command will set it, nor is the host about to.
    pub is_open: bool,
}

/// Which commands of its stream a command follows.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The stream.
    pub stream: usize,
    /// Whether it follows all earlier commands, or the last barrier only.
    pub follows_all: bool,
    /// Whether all later commands follow it.
    pub holds_later: bool,
}

/// The memory of a command.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// What the command is, in words; empty for one that accesses no memory.
    pub what: String,
    /// Bytes that it reads: ranges by increasing addresses, which do not overlap.
    pub reads: SmallVec<[Range<usize>; 1]>,
    /// Bytes that it writes, likewise.
    pub writes: SmallVec<[Range<usize>; 1]>,
    /// The pointers that a kernel is given; how much it reads or writes there is unknown.
    pub pointers: SmallVec<[usize; 4]>,
    /// Another context, whose memory it may read.
    pub context: Option<u64>,
}

impl Uses {
    /// Whether a kernel is what accesses the memory.
    pub fn is_kernel(&self) -> bool {
        self.writes.is_empty() && !self.pointers.is_empty()
    }

    /// The first byte that this and another command access, one of them writing. Two kernels with the same pointer may
    /// both only read.
    pub fn conflict(&self, other: &Self) -> Option<usize> {
        self.written_by(other).or_else(|| other.written_by(self))
    }

    /// The first byte that this one writes and the other one accesses.
    fn written_by(&self, other: &Self) -> Option<usize> {
        let pointer = |it: &&usize| self.writes.iter().any(|written| written.contains(it));
        let all = [
            first_common(&self.writes, &other.writes),
            first_common(&self.writes, &other.reads),
            other.pointers.iter().filter(pointer).min().copied(),
        ];
        all.into_iter().flatten().min()
    }

    /// The first byte of a copy that is in its source and in its destination, at different places: the copy may write it
    /// before it has read it. A copy of bytes onto themselves changes nothing.
    pub fn overlap(&self) -> Option<usize> {
        if self.reads == self.writes {
            return None;
        }
        first_common(&self.reads, &self.writes)
    }

    /// Whether it accesses a byte of `range`.
    pub fn touches(&self, range: &Range<usize>) -> bool {
        let overlaps =
            |it: &Range<usize>| !it.is_empty() && it.start < range.end && range.start < it.end;
        self.reads.iter().chain(&self.writes).any(overlaps)
            || self.pointers.iter().any(|it| range.contains(it))
    }

    /// Whether it may write the byte at `address` of the allocation `range`.
    pub fn may_write(&self, address: usize, range: &Range<usize>) -> bool {
        self.writes.iter().any(|written| written.contains(&address))
            || self.pointers.iter().any(|it| range.contains(it))
    }
}

/// The first byte that both lists have. One pass over both finds it, as each is in order of addresses.
fn first_common(some: &[Range<usize>], others: &[Range<usize>]) -> Option<usize> {
    let filled = |range: &&Range<usize>| !range.is_empty();
    let (mut some, mut others) = (
        some.iter().filter(filled).peekable(),
        others.iter().filter(filled).peekable(),
    );
    loop {
        let (one, other) = (some.peek()?, others.peek()?);
        if one.end <= other.start {
            some.next();
        } else if other.end <= one.start {
            others.next();
        } else {
            return Some(one.start.max(other.start));
        }
    }
}

#[cfg(test)]
mod tests;
