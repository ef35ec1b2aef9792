//! Splitting large operations over the processors.

use super::bytes::STREAM_FROM;
use crate::engine::Kind;
use crate::system::processor;

/// Up to this many bytes are moved by the thread that appends: handing them to a worker takes as long.
pub const SHORT: usize = 1 << 20;
/// The least that is worth a processor of its own.
const LEAST: usize = 256 << 10;
/// The most that a worker takes at a time, so that all of them end together.
const MOST: usize = 4 << 20;
/// Parts begin on a page, so that no two workers write to one cache line.
const GRAIN: usize = 4096;

/// How the bytes of an operation are dealt out.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    length: usize,
    part: usize,
}

impl Split {
    /// Deals out `length` bytes.
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

    /// Whether it is left to workers.
    pub fn kind(self) -> Kind {
        if self.length <= SHORT {
            Kind::Short
        } else {
            Kind::Long
        }
    }

    /// Whether it should bypass the caches.
    pub fn streams(self) -> bool {
        self.length >= STREAM_FROM
    }

    /// How many parts there are.
    pub fn parts(self) -> usize {
        self.length.div_ceil(self.part)
    }

    /// Where part `index` begins and how long it is.
    pub fn part(self, index: usize) -> (usize, usize) {
        let offset = index * self.part;
        (offset, self.part.min(self.length.saturating_sub(offset)))
    }
}
