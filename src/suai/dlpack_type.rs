//! The type of an item as DLPack has it.

/// DLPack's description of an item (`DLDataType`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DlpackType {
    /// `DLDataTypeCode`: 0 int, 1 unsigned int, 2 float, 5 complex, 6 bool; [`Narrow`](super::Narrow) has others.
    pub code: u8,
    /// The bits of one item.
    pub bits: u8,
    /// The numbers in one item: 1, or 2 of half a byte each.
    pub lanes: u16,
}

impl DlpackType {
    /// Whether the numbers fill the bytes of an item, without padding.
    #[must_use]
    pub(crate) fn fills_bytes(self) -> bool {
        (usize::from(self.bits) * usize::from(self.lanes)).is_multiple_of(8)
    }
}
