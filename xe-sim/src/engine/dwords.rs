//! Fields of commands.

/// A 64-bit field in two dwords, low half first.
pub(super) fn wide(dwords: &[u32], at: usize) -> u64 {
    u64::from(dwords[at]) | u64::from(dwords[at + 1]) << 32
}

/// An address field whose two lowest bits have other meanings.
pub(super) fn address(dwords: &[u32], at: usize) -> u64 {
    wide(dwords, at) & !3
}
