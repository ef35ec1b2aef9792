//! Splitting large operations over the processors.

use crate::engine::Kind;
use crate::system::processor;

/// Up to this many bytes, the thread that appends does the work: to wake a worker takes as long as is gained. In the caches,
/// that holds up to 6 MiB, and up to 2 MiB of memory that is in none.
pub const SHORT: usize = 3 << 20;
/// The minimal size of a part.
const LEAST: usize = 256 << 10;
/// The maximal size of a part, so that all workers finish at about the same time.
const MOST: usize = 4 << 20;
/// Parts begin on a page, so that no two workers write to the same cache line.
const GRAIN: usize = 4096;

/// The division of an operation's bytes into parts.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    length: usize,
    part: usize,
}

impl Split {
    /// Divides `length` bytes among the processors.
    pub fn new(length: usize) -> Self {
        let fair = length.div_ceil(processor::count()).next_multiple_of(GRAIN);
        Self {
            length,
            part: fair.clamp(LEAST, MOST),
        }
    }

    /// All in one part.
    pub fn whole(length: usize) -> Self {
        Self {
            length,
            part: length.max(1),
        }
    }

    /// Short or long, by the length.
    pub fn kind(self) -> Kind {
        self.kind_above(SHORT)
    }

    /// Long above `short` bytes.
    pub fn kind_above(self, short: usize) -> Kind {
        if self.length <= short {
            Kind::Short
        } else {
            Kind::Long
        }
    }

    /// How many parts there are.
    pub fn parts(self) -> usize {
        self.length.div_ceil(self.part)
    }

    /// The offset and the length of part `index`.
    pub fn part(self, index: usize) -> (usize, usize) {
        let offset = index * self.part;
        (offset, self.part.min(self.length.saturating_sub(offset)))
    }
}
