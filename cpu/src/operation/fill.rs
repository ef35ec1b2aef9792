//! Filling memory with a pattern.

use std::ptr;

use smallvec::{SmallVec, smallvec};

use super::bytes::{STREAM_FILLS_FROM, repeat, stream_fill};
use super::split::{SHORT, Split};
use crate::abi::result::ZeResult;
use crate::check::Uses;
use crate::engine::{Kind, Operation, Pins};
use crate::memory::Span;

/// The longest pattern that a streaming store holds.
const STREAMED_PATTERN: usize = 64;

/// Fills a span.
#[derive(Debug)]
pub struct Fill {
    to: Span,
    split: Split,
    pattern: SmallVec<[u8; 16]>,
}

impl Fill {
    /// Repeats `pattern`, which is not empty, over all of `to`; the last repetition may be cut.
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
        // It uses half the memory of a copy, so handing it to a worker pays from twice the size on.
        self.split.kind_above(2 * SHORT)
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

    fn has_short_parts(&self) -> bool {
        true
    }

    fn run(&self, part: usize) -> ZeResult {
        let (offset, length) = self.split.part(part);
        let to = (self.to.address() + offset) as *mut u8;
        // SAFETY: the caller of the append vouches for the span, as the specification demands; a span in an allocation
        // lies inside of it, and a pin keeps it alive. Parts begin on multiples of every pattern that is streamed.
        unsafe {
            if self.to.length() >= STREAM_FILLS_FROM && self.is_aligned() {
                stream_fill(to, length, &self.pattern);
            } else if let [byte] = *self.pattern.as_slice() {
                ptr::write_bytes(to, byte, length);
            } else {
                // A part may begin within a repetition.
                let rest = &self.pattern[offset % self.pattern.len()..];
                let head = rest.len().min(length);
                ptr::copy_nonoverlapping(rest.as_ptr(), to, head);
                repeat(to.add(head), &self.pattern, length - head);
            }
        }
        Ok(())
    }
}

impl Fill {
    /// Whether the span consists of whole repetitions of a pattern of the kind that streaming stores hold, and is
    /// aligned to it.
    fn is_aligned(&self) -> bool {
        let length = self.pattern.len();
        length.is_power_of_two()
            && length <= STREAMED_PATTERN
            && self.to.address().is_multiple_of(length)
            && self.to.length().is_multiple_of(length)
    }
}
