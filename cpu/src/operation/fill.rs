//! Filling memory with a pattern.

use std::ptr;

use smallvec::{SmallVec, smallvec};

use super::bytes::{repeat, stream_fill};
use super::split::Split;
use crate::abi::result::ZeResult;
use crate::check::Uses;
use crate::engine::{Kind, Operation, Pins};
use crate::memory::Span;

/// The longest pattern that a streaming store holds.
const STREAMED_PATTERN: usize = 64;

/// Fills a span, whose length is a multiple of the pattern's.
#[derive(Debug)]
pub struct Fill {
    to: Span,
    split: Split,
    pattern: SmallVec<[u8; 16]>,
}

impl Fill {
    /// Repeats `pattern`, whose length is a power of two up to a page, over all of `to`, which is aligned to it.
    pub fn new(to: Span, pattern: &[u8]) -> Self {
        let uniform = pattern
            .first()
            .filter(|first| pattern.iter().all(|byte| byte == *first));
        let pattern = match uniform {
            Some(byte) => SmallVec::from_slice(&[*byte]),
            None => SmallVec::from_slice(pattern),
        };
        Self {
            split: Split::new(to.length()),
            to,
            pattern,
        }
    }
}

impl Operation for Fill {
    fn kind(&self) -> Kind {
        self.split.kind()
    }

    fn pin(&self) -> ZeResult<Pins> {
        Ok(self.to.pin()?.into_iter().collect())
    }

    fn uses(&self) -> Uses {
        Uses {
            what: format!("a fill of {} bytes", self.to.length()),
            writes: smallvec![self.to.range()],
            ..Uses::default()
        }
    }

    fn parts(&self) -> usize {
        self.split.parts()
    }

    fn run(&self, part: usize) -> ZeResult {
        let (offset, length) = self.split.part(part);
        let to = (self.to.address() + offset) as *mut u8;
        // SAFETY: the caller of the append vouches for the span, as the specification demands; a span in an allocation
        // lies inside of it, and a pin keeps it alive. Parts begin on multiples of every pattern.
        unsafe {
            if self.split.streams() && self.pattern.len() <= STREAMED_PATTERN {
                stream_fill(to, length, &self.pattern);
            } else if let [byte] = *self.pattern.as_slice() {
                ptr::write_bytes(to, byte, length);
            } else {
                repeat(to, &self.pattern, length);
            }
        }
        Ok(())
    }
}
