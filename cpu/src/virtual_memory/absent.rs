//! No virtual memory: physical memory is one of Linux's memory files.

use std::ops::Range;
use std::sync::Arc;

/// Physical memory: there is none.
#[derive(Debug)]
pub struct PhysicalMemory {
    /// The id.
    pub id: u64,
    /// The handle of its device.
    pub device: usize,
}

/// What is mapped at `address`: nothing.
pub fn find(_context: Option<u64>, _address: usize) -> Option<(Range<usize>, Arc<PhysicalMemory>)> {
    None
}
