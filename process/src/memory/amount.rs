//! Amounts of memory.

/// What a process may use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The physical memory.
    pub total: u64,
    /// The same with swap space.
    pub with_swap: u64,
    /// What could be used right now: free memory, file cache that the system would give up, free swap space.
    pub available: u64,
}

/// Nothing limits it.
pub(super) const UNLIMITED: Memory = Memory {
    total: u64::MAX,
    with_swap: u64::MAX,
    available: u64::MAX,
};
