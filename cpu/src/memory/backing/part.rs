//! Parts of physical memory, which share its file.

use super::record::Record;
use crate::system::PAGE;

/// The bits of a position for a number of pages.
const BITS: u32 = 31;

/// Some pages of a memory file. The position of a descriptor tells them; at 0 it is one of the whole memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    first: u64,
    pages: u64,
}

impl Part {
    /// `length` bytes at `offset`, both whole pages; `None` for more than a position can tell, 8 TiB.
    pub fn new(offset: usize, length: usize) -> Option<Self> {
        let [first, pages] = [offset, length].map(|bytes| (bytes / PAGE) as u64);
        (first >> BITS == 0 && pages >> BITS == 0).then_some(Self { first, pages })
    }

    /// That of a descriptor at this position.
    pub fn at(position: u64) -> Option<Self> {
        (position != 0).then_some(Self {
            first: position >> BITS,
            pages: position & ((1 << BITS) - 1),
        })
    }

    /// The position of its descriptor.
    pub fn position(self) -> u64 {
        self.first << BITS | self.pages
    }

    /// The record of the part of the memory that `whole` describes; `None` when it has no such part.
    pub fn of(self, whole: &Record) -> Option<Record> {
        let page = PAGE as u64;
        let offset = self.first.checked_mul(page)?;
        let size = self.pages.checked_mul(page)?;
        let is_inside = size > 0 && offset.checked_add(size)? <= whole.size && whole.offset == 0;
        is_inside.then_some(Record {
            offset,
            size,
            ..*whole
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use level_zero_sys as sys;

    use super::*;

    #[test]
    fn a_position_tells_the_part() {
        let whole = Record {
            id: 7,
            offset: 0,
            size: 10 * PAGE as u64,
            kind: sys::ZE_MEMORY_TYPE_DEVICE,
        };
        assert_eq!(Part::at(0), None);
        for (offset, length, is_inside) in [
            (0, 1, true),
            (9, 1, true),
            (9, 2, false),
            (1 << 30, 1, false),
        ] {
            let part = Part::new(offset * PAGE, length * PAGE).unwrap();
            assert!(part.position() <= i64::MAX as u64);
            assert_eq!(Part::at(part.position()), Some(part));
            let record = part.of(&whole);
            assert_eq!(record.is_some(), is_inside);
            if let Some(record) = record {
                let found = (record.offset as usize, record.size as usize);
                assert_eq!(found, (offset * PAGE, length * PAGE));
            }
        }
        assert_eq!(Part::new(0, PAGE << BITS), None);
        assert_eq!(Part::at(1 << BITS).unwrap().of(&whole), None, "of no pages");
    }
}
