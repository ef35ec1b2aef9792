//! The record of an exported allocation in its file, behind its pages.

use level_zero_sys as sys;

/// An exported allocation. With it, a descriptor is enough to map the allocation and to tell whether its owner has
/// freed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The allocation's id in the process that owns it; never 0.
    pub id: u64,
    /// Its offset in the file, in bytes: 0, but for an allocation that the checker watches.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Host, device or shared.
    pub kind: sys::ze_memory_type_t,
}

impl Record {
    /// Bytes of a record in a file.
    pub const LENGTH: usize = 32;
    const MAGIC: u32 = 0x7a75_736d;

    /// As a file holds it.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let tail = u64::from(self.kind.0) | u64::from(Self::MAGIC) << 32;
        let mut bytes = [0; Self::LENGTH];
        let fields = [self.id, self.offset, self.size, tail];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Decodes a record; `None` when `bytes` are none.
    pub fn decode(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let (fields, _) = bytes.as_chunks::<8>();
        let [id, offset, size, tail] = fields else {
            return None;
        };
        let tail = u64::from_le_bytes(*tail);
        let kind = sys::ze_memory_type_t(tail as u32);
        let kinds = [
            sys::ZE_MEMORY_TYPE_HOST,
            sys::ZE_MEMORY_TYPE_DEVICE,
            sys::ZE_MEMORY_TYPE_SHARED,
        ];
        let is_record = (tail >> 32) as u32 == Self::MAGIC && kinds.contains(&kind);
        is_record.then(|| Self {
            id: u64::from_le_bytes(*id),
            offset: u64::from_le_bytes(*offset),
            size: u64::from_le_bytes(*size),
            kind,
        })
    }
}
