//! Filling memory with a pattern.

use std::ptr;

use smallvec::SmallVec;

use super::{PART, SHORT};
use crate::answer::Answer;
use crate::engine::{Operation, Pins};
use crate::usm::Span;

/// A pattern is repeated to at least this length before it is copied about.
const TILE: usize = 4096;

/// Fills a span, whose length is a multiple of the pattern's.
#[derive(Debug)]
pub struct Fill {
    to: Span,
    pattern: SmallVec<[u8; 16]>,
}

impl Fill {
    /// Repeats `pattern`, whose length is a power of two up to a page, over all of `to`.
    pub fn new(to: Span, pattern: &[u8]) -> Self {
        let uniform = pattern
            .first()
            .filter(|first| pattern.iter().all(|byte| byte == *first));
        let pattern = match uniform {
            Some(byte) => SmallVec::from_slice(&[*byte]),
            None => SmallVec::from_slice(pattern),
        };
        Self { to, pattern }
    }
}

impl Operation for Fill {
    fn is_short(&self) -> bool {
        self.to.length() <= SHORT
    }

    fn pin(&self) -> Answer<Pins> {
        Ok(self.to.pin()?.into_iter().collect())
    }

    fn parts(&self) -> usize {
        self.to.length().div_ceil(PART)
    }

    fn run(&self, part: usize) -> Answer {
        let offset = part * PART;
        let length = (self.to.length() - offset).min(PART);
        let to = (self.to.address() + offset) as *mut u8;
        // SAFETY: whoever appended the fill vouches for the span, as the specification demands; a span in an
        // allocation lies inside of it, and a pin keeps it in place. PART is a multiple of every pattern's length.
        unsafe {
            match *self.pattern.as_slice() {
                [byte] => ptr::write_bytes(to, byte, length),
                _ => tile(to, length, &self.pattern),
            }
        }
        Ok(())
    }
}

/// Repeats `pattern` over `length` bytes, a multiple of its length.
///
/// # Safety
/// `to` must be valid for `length` bytes of writing.
unsafe fn tile(to: *mut u8, length: usize, pattern: &[u8]) {
    // Doubling until the tile is long, then copying the tile, which stays in the cache.
    let mut done = pattern.len().min(length);
    // SAFETY: `done` never exceeds `length`, and source and destination do not overlap.
    unsafe {
        ptr::copy_nonoverlapping(pattern.as_ptr(), to, done);
        while done < length {
            let next = done.min(TILE).min(length - done);
            ptr::copy_nonoverlapping(to, to.add(done), next);
            done += next;
        }
    }
}
