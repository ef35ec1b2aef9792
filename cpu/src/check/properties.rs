//! What the checker is told of an allocation.

use std::ops::Range;

/// The properties of an allocation, with inaccessible guard pages around it.
#[derive(Debug)]
pub struct Properties {
    /// The allocation's id.
    pub id: u64,
    /// Address of the first byte.
    pub base: usize,
    /// Size in bytes, as asked for.
    pub size: usize,
    /// The kind of memory, in words.
    pub kind: &'static str,
    /// The id of its context.
    pub context: u64,
    /// All addresses, guard pages included.
    pub whole: Range<usize>,
    /// The pages of the allocation.
    pub pages: Range<usize>,
    /// Whether the host may access it.
    pub host: bool,
    /// Of memory that another process has exported: its id there.
    pub exported_as: Option<u64>,
}

impl Properties {
    /// The bytes of the allocation.
    pub fn bytes(&self) -> Range<usize> {
        self.base..self.base + self.size
    }
}
