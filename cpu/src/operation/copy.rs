//! Copying memory.

use std::ptr;

use super::{PART, SHORT};
use crate::answer::Answer;
use crate::engine::{Operation, Pins};
use crate::usm::Span;

/// Copies one span to another of the same length; they may overlap.
#[derive(Debug)]
pub struct Copy {
    to: Span,
    from: Span,
    overlapping: bool,
}

impl Copy {
    /// A copy of all of `from`, which is as long as `to`.
    pub fn new(to: Span, from: Span) -> Self {
        let overlapping = to.overlaps(&from);
        Self {
            to,
            from,
            overlapping,
        }
    }
}

impl Operation for Copy {
    fn is_short(&self) -> bool {
        self.to.length() <= SHORT
    }

    fn pin(&self) -> Answer<Pins> {
        Ok([self.to.pin()?, self.from.pin()?]
            .into_iter()
            .flatten()
            .collect())
    }

    fn parts(&self) -> usize {
        // Parts run in any order, which an overlap does not stand.
        if self.overlapping {
            1
        } else {
            self.to.length().div_ceil(PART)
        }
    }

    fn run(&self, part: usize) -> Answer {
        let offset = part * PART;
        let rest = self.to.length() - offset;
        let length = if self.overlapping {
            rest
        } else {
            rest.min(PART)
        };
        let (from, to) = (self.from.address() + offset, self.to.address() + offset);
        // SAFETY: whoever appended the copy vouches for both spans, as the specification demands; spans in an
        // allocation lie inside of it, and pins keep it in place.
        unsafe { ptr::copy(from as *const u8, to as *mut u8, length) };
        Ok(())
    }
}
