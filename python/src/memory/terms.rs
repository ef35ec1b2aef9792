//! The terms of a memory object, in one byte, as there may be millions of objects.

/// The alignment that was requested, and whether the memory is read-only.
#[derive(Clone, Copy)]
pub(crate) struct Terms(u8);

/// The other bits are the alignment as a power of two, 0 for none.
const READ_ONLY: u8 = 0x80;

impl Terms {
    /// Without an alignment.
    pub(crate) fn new(is_read_only: bool) -> Self {
        Self(if is_read_only { READ_ONLY } else { 0 })
    }

    /// The same with an alignment of 0, for none, or a power of two.
    pub(crate) fn aligned(self, alignment: usize) -> Self {
        let bits = alignment.checked_ilog2().map_or(0, |bits| bits as u8);
        Self(self.0 & READ_ONLY | bits)
    }

    pub(crate) fn is_read_only(self) -> bool {
        self.0 & READ_ONLY != 0
    }

    /// In bytes; 0 for none.
    pub(crate) fn alignment(self) -> usize {
        match self.0 & !READ_ONLY {
            0 => 0,
            bits => 1 << bits,
        }
    }
}
