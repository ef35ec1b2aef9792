//! Copying memory.

use std::ptr;

use smallvec::smallvec;

use super::bytes::{STREAM_COPIES_FROM, stream_copy};
use super::split::Split;
use crate::abi::result::ZeResult;
use crate::check::{self, Uses};
use crate::engine::{Kind, Operation, Pins};
use crate::memory::Span;

/// Copies one span to another of the same length; they may overlap.
#[derive(Debug)]
pub struct Copy {
    to: Span,
    from: Span,
    split: Split,
    overlapping: bool,
    /// The context of the source, if it may be another one than the list's.
    context: Option<u64>,
}

impl Copy {
    /// A copy of all of `from`, which is as long as `to`.
    pub fn new(to: Span, from: Span) -> Self {
        let overlapping = to.overlaps(&from);
        // Parts run in any order, so overlapping spans are copied in one part.
        let split = if overlapping {
            Split::whole(to.length())
        } else {
            Split::new(to.length())
        };
        Self {
            to,
            from,
            split,
            overlapping,
            context: None,
        }
    }

    /// The same copy, out of memory of the context with this id.
    #[must_use]
    pub fn from_context(self, context: u64) -> Self {
        Self {
            context: Some(context),
            ..self
        }
    }
}

impl Operation for Copy {
    fn kind(&self) -> Kind {
        self.split.kind()
    }

    fn pin(&self) -> ZeResult<Pins> {
        let pins = [self.to.pin()?, self.from.pin()?];
        Ok(pins.into_iter().flatten().collect())
    }

    fn uses(&self) -> Uses {
        Uses {
            what: format!("a copy of {} bytes", self.to.length()),
            reads: smallvec![self.from.range()],
            writes: smallvec![self.to.range()],
            context: self.context,
            ..Uses::default()
        }
    }

    fn parts(&self) -> usize {
        self.split.parts()
    }

    fn has_short_parts(&self) -> bool {
        !self.overlapping
    }

    fn run(&self, part: usize) -> ZeResult {
        let (offset, length) = self.split.part(part);
        let from = (self.from.address() + offset) as *const u8;
        let to = (self.to.address() + offset) as *mut u8;
        // SAFETY: the caller of the append vouches for both spans, as the specification demands; spans in an allocation
        // lie inside of it, and pins keep it alive.
        unsafe {
            check::copying(from as usize, length, to as usize);
            if self.overlapping {
                ptr::copy(from, to, length);
            } else if self.to.length() >= STREAM_COPIES_FROM {
                stream_copy(to, from, length);
            } else {
                ptr::copy_nonoverlapping(from, to, length);
            }
        }
        Ok(())
    }
}
